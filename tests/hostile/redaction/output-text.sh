#!/bin/bash
# class: redaction
# title: in a text artefact
# expects: safe
printf 'token=%s\n%s\n' "$CANARY" "$KEY" > "$OUT/notes.txt"
