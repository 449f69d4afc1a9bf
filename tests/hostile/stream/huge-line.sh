#!/bin/bash
# class: stream
# title: a line of 70 MB, then a result
# expects: safe
# kept: new
echo '{"type":"system","subtype":"init","model":"x"}'
printf '{"type":"assistant","x":"'; head -c 70000000 /dev/zero | tr '\0' a; echo '"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'; echo x > new
