#!/bin/bash
# class: redaction
# title: in text, tool input, tool result and the result of a stream
# expects: safe
e=$(printf '%s' "$CANARY" | perl -pe 's/(["\\])/\\$1/g')
printf '{"type":"system","subtype":"init","model":"%s"}\n{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"a %s b"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"echo %s"}}]}}\n{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"%s"}]}}\n{"type":"result","subtype":"success","is_error":false,"result":"%s"}\n' "$e" "$e" "$e" "$e" "$e"
