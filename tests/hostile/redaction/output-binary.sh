#!/bin/bash
# class: redaction
# title: in a binary artefact
# expects: secret
printf '\000\377%s\000' "$CANARY" > "$OUT/core"
