#!/bin/bash
# class: link
# title: a directory of objects is a link
# expects: safe
echo new > a; git add a
d=$(echo .git/objects/??/ | cut -d' ' -f1); d=${d%/}
mkdir -p /tmp/o; cp -r "$d" /tmp/o/; rm -rf "$d"; ln -s "/tmp/o/$(basename "$d")" "$d"
