#!/bin/bash
# class: name
# title: direction controls and invisible characters in a name
# expects: safe
# kept: fine
echo 1 > "$(printf 'a\342\200\256fdp.exe')"; echo 1 > "$(printf 'zero\342\200\213width')"; echo 1 > fine; git add -A; git commit -q -m "$(printf 'bidi \342\200\256 INJECTED')"
