#!/bin/bash
# class: name
# title: bytes that are not UTF-8 in a name
# expects: safe
# kept: fine
echo 1 > "$(printf 'not-\377-utf8')"; echo 1 > "$(printf 'c1-\302\2331m')"; echo 1 > fine
