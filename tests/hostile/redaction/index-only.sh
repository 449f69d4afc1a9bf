#!/bin/bash
# class: redaction
# title: in a staged file that is gone from the tree
# expects: secret
printf '%s\n' "$CANARY" > leak; git add leak; rm leak
