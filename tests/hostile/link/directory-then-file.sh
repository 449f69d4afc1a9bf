#!/bin/bash
# class: link
# title: a link to a directory outside, and a file named below it in the index
# expects: safe
# gone: d
ln -s "$OUTSIDE/dir" d
git add d
echo evil > d2; blob=$(git hash-object -w d2); rm d2
git update-index --add --cacheinfo "100644,$blob,plain"
