#!/bin/bash
# class: git
# title: a committed tree with a duplicate entry
# expects: refused
b=$(echo x | git hash-object -w --stdin); { printf '100644 a\0'; printf %s "$b" | perl -pe 's/(..)/chr hex $1/ge'; printf '100644 a\0'; printf %s "$b" | perl -pe 's/(..)/chr hex $1/ge'; } > /tmp/t
git update-ref refs/heads/evil "$(git commit-tree -m x "$(git hash-object -t tree -w --literally /tmp/t)")"
