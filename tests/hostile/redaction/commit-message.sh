#!/bin/bash
# class: redaction
# title: in a commit message
# expects: secret
git commit -q --allow-empty -m "use $CANARY"
