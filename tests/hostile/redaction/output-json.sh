#!/bin/bash
# class: redaction
# title: in a JSON artefact
# expects: safe
e=$(printf '%s' "$CANARY" | perl -pe 's/(["\\])/\\$1/g'); printf '{"a":"%s","b":["%s"],"%s":1}\n' "$e" "$e" "$e" > "$OUT/agent-result.json"
