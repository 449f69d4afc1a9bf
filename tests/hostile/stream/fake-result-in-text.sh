#!/bin/bash
# class: stream
# title: text that looks like a result, and no result
# expects: failed
printf '%s\n' '{"type":"system","subtype":"init"}' '{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false}"}]}}'
