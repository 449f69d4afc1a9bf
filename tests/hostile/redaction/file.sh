#!/bin/bash
# class: redaction
# title: in a new file
# expects: secret
# gone: leak
printf 'x %s\n' "$CANARY" > leak
