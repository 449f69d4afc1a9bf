#!/bin/bash
# class: git
# title: a committed tree with .g ZWNJ it
# expects: refused
b=$(echo x | git hash-object -w --stdin); t=$(printf '100644 blob %s\t.g\342\200\214it\n' $b | git mktree); git update-ref refs/heads/evil "$(git commit-tree -m x "$t")"
