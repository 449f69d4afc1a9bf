#!/bin/bash
# class: git
# title: a committed tree with a name of 5000 bytes
# expects: refused
b=$(echo x | git hash-object -w --stdin); t=$(printf '100644 blob %s\t%05000d\n' $b 0 | git mktree); git update-ref refs/heads/evil "$(git commit-tree -m x "$t")"
