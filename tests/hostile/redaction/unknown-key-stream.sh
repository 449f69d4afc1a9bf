#!/bin/bash
# class: redaction
# title: in fields of a stream that nobody reads
# expects: safe
e=$(printf '%s' "$CANARY" | perl -pe 's/(["\\])/\\$1/g'); printf '{"type":"system","subtype":"init","secret":"%s","%s":{"deep":["%s"]}}\n{"type":"result","subtype":"success","is_error":false,"result":"done"}\n' "$e" "$e" "$e"
