#!/bin/bash
# class: size
# title: a file that a stray process goes on writing
# expects: safe
# kept: fine
(while :; do head -c 100000 /dev/zero >> grows; sleep 0.05; done) > /dev/null 2>&1 &
echo 1 > fine
