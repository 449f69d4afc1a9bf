#!/bin/bash
# class: redaction
# title: in the name of a tag
# expects: secret
git tag 'l-'"$(printf '%s' "$KEY" | sed -n 2p)"
