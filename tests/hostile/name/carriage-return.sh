#!/bin/bash
# class: name
# title: a carriage return before a command in a name
# expects: safe
# kept: fine
echo 1 > "$(printf 'x\r::warning::INJECTED')"; echo 1 > fine; git add -A; git commit -q -m x
