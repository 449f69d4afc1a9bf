#!/bin/bash
# class: stream
# title: NUL bytes between and in the lines
# expects: safe
printf '{"type":"system","subtype":"init"}\n\0\0\n{"type":"assistant"\0}\n{"type":"result","subtype":"success","is_error":false,"result":"done"}\n'; echo x > new
