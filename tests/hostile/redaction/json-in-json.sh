#!/bin/bash
# class: redaction
# title: JSON in JSON, in a stream
# expects: safe
e=$(printf '%s' "$CANARY" | perl -pe 's/(["\\])/\\$1/g' | perl -pe 's/(["\\])/\\$1/g')
printf '{"type":"system","subtype":"init"}\n{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"{\\"t\\":\\"%s\\"}"}]}}\n{"type":"result","subtype":"success","is_error":false,"result":"done"}\n' "$e"
