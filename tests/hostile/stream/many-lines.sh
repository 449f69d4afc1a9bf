#!/bin/bash
# class: stream
# title: a hundred thousand lines
# expects: safe
echo '{"type":"system","subtype":"init","model":"x"}'
yes '{"type":"assistant","message":{"id":"m","content":[]}}' | head -n 100000
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'; echo x > new
