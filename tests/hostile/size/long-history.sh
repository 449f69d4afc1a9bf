#!/bin/bash
# class: size
# title: a branch of 500 commits
# expects: safe
# says: the post-script is done
t=$(git rev-parse 'HEAD^{tree}')
git rev-parse HEAD > /tmp/p
{ i=0; while [ $i -lt 500 ]; do printf 'commit refs/heads/long\ncommitter A <a@e> 1700000000 +0000\ndata 1\nx\n'; [ $i -gt 0 ] || printf 'from %s\n' "$(cat /tmp/p)"; i=$((i+1)); done; } | git fast-import --quiet
