#!/bin/bash
# class: name
# title: a name of 255 bytes
# expects: safe
# kept: fine
echo 1 > "$(printf '%0255d' 0)"; echo 1 > fine
