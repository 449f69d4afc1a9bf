#!/bin/bash
# class: stream
# title: JSON nested a million levels deep
# expects: safe
echo '{"type":"system","subtype":"init"}'
printf '{"type":"assistant","message":'; head -c 1000000 /dev/zero | tr '\0' '['; echo
printf '{"type":"result","subtype":"success","is_error":false,"result":"done"}\n'
