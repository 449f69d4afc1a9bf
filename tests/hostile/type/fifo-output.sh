#!/bin/bash
# class: type
# title: a named pipe in the output
# expects: safe
mkfifo "$OUT/pipe"; echo 1 > "$OUT/fine"
