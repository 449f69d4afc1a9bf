#!/bin/bash
# class: redaction
# title: in the name of a branch
# expects: secret
git branch 'l-'"$(printf '%s' "$KEY" | sed -n 2p)"
