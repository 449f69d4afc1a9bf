#!/bin/bash
# class: redaction
# title: base64 that line breaks cut, in an artefact
# expects: safe
printf '%50s%s' '' "$CANARY" | base64 > "$OUT/wrapped"
