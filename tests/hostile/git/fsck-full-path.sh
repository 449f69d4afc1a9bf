#!/bin/bash
# class: git
# title: a committed tree with a slash in a name
# expects: refused
b=$(echo x | git hash-object -w --stdin); t=$(printf '100644 ../../evil\0%s' "$(printf %s "$b" | perl -pe 's/(..)/chr hex $1/ge')" > /tmp/t 2>/dev/null; { printf '100644 ../../evil\0'; printf %s "$b" | perl -pe 's/(..)/chr hex $1/ge'; } > /tmp/t; git hash-object -t tree -w --literally /tmp/t)
git update-ref refs/heads/evil "$(git commit-tree -m x "$t")"
