#!/bin/bash
# class: stream
# title: a byte order mark before the first line
# expects: safe
printf '\357\273\277{"type":"system","subtype":"init"}\n{"type":"result","subtype":"success","is_error":false,"result":"done"}\n'
