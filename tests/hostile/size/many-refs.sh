#!/bin/bash
# class: size
# title: twelve thousand branches
# expects: refused
h=$(git rev-parse HEAD)
{ echo '# pack-refs with: peeled fully-peeled sorted'; i=10000; while [ $i -lt 22000 ]; do echo "$h refs/heads/b$i"; i=$((i+1)); done; echo "$h refs/heads/main"; echo "$h refs/heads/other"; echo "$h refs/tags/v0"; } > .git/packed-refs
