#!/bin/bash
# class: git
# title: a commit with a hostile .gitmodules, which fsck refuses
# expects: refused
printf '[submodule "../x"]\n\tpath = x\n\turl = -u./payload\n' > .gitmodules; git add -A; git commit -q -m x
