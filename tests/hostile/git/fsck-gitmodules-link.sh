#!/bin/bash
# class: git
# title: a committed .gitmodules that is a link
# expects: refused
b=$(printf a | git hash-object -w --stdin); t=$(printf '120000 blob %s\t.gitmodules\n' $b | git mktree); git update-ref refs/heads/evil "$(git commit-tree -m x "$t")"
