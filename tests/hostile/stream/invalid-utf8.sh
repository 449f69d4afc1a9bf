#!/bin/bash
# class: stream
# title: invalid UTF-8, overlong forms and lone surrogates
# expects: safe
printf '{"type":"system","subtype":"init"}\n{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"\377\300\257\355\240\200 \\ud800 \\udfff"}]}}\n{"type":"result","subtype":"success","is_error":false,"result":"\377"}\n'
