#!/bin/bash
# class: redaction
# title: JSON-escaped, in text
# expects: safe
printf '%s' "$CANARY" | perl -Mutf8 -CS -ne 's/(["\\])/\\$1/g; print "{\"x\":\"$_\"}\n"'
