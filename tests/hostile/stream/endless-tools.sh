#!/bin/bash
# class: stream
# title: five thousand tools that never end
# expects: safe
echo '{"type":"system","subtype":"init"}'
i=0; while [ $i -lt 5000 ]; do echo '{"type":"assistant","message":{"id":"m'$i'","content":[{"type":"tool_use","id":"t'$i'","name":"Bash","input":{"command":"x"}}]}}'; i=$((i+1)); done
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
