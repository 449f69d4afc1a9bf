#!/bin/bash
# class: stream
# title: a result that is cut off
# expects: failed
printf '{"type":"system","subtype":"init"}\n{"type":"result","subtype":"success","is_error":false,"resu'
