#!/bin/bash
# class: git
# title: a committed tree with an entry .GIT
# expects: refused
b=$(echo x | git hash-object -w --stdin); i=$(printf '100644 blob %s\tconfig\n' $b | git mktree); t=$(printf '040000 tree %s\t.GIT\n' $i | git mktree)
git update-ref refs/heads/evil "$(git commit-tree -m x "$t")"
