#!/bin/bash
# class: redaction
# title: in base64 in a file
# expects: secret
printf 'xx%s' "$CANARY" | base64 > leak
