#!/bin/bash
# class: redaction
# title: in the target of a link
# expects: secret
ln -s "$CANARY" leak; git add -A
