#!/bin/bash
# class: stream
# title: an error after a success: the last word counts
# expects: failed
printf '%s\n' '{"type":"system","subtype":"init"}' '{"type":"result","subtype":"success","is_error":false,"result":"a"}' '{"type":"result","subtype":"success","is_error":true,"result":"b"}'
