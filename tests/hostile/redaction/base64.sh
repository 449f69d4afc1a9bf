#!/bin/bash
# class: redaction
# title: base64 at each offset, both alphabets
# expects: safe
for p in '' a ab; do printf '%s%s' "$p" "$CANARY" | base64 -w0; echo; printf '%s%s' "$p" "$CANARY" | base64 -w0 | tr '+/' '-_'; echo; done
