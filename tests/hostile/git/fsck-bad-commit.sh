#!/bin/bash
# class: git
# title: a commit with a NUL and without an author
# expects: refused
{ printf 'tree %s\n' "$(git rev-parse 'HEAD^{tree}')"; printf 'committer x <x> 1 +0000\n\nx\0y\n'; } > /tmp/c
git update-ref refs/heads/evil "$(git hash-object -t commit -w --literally /tmp/c)"
