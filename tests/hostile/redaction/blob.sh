#!/bin/bash
# class: redaction
# title: in a committed blob that a later commit removes
# expects: secret
printf '%s\n' "$CANARY" > leak; git add leak; git commit -q -m add; git rm -q leak; git commit -q -m remove
