#!/bin/bash
# class: name
# title: a newline in a name
# expects: safe
# kept: fine
echo 1 > "$(printf 'new\nline')"; echo 1 > fine; git add -A
