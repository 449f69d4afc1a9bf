#!/bin/bash
# class: git
# title: a skip list for fsck and a tree that needs it
# expects: refused
git config fetch.fsck.skipList list; git config fsck.skipList list; git config fetch.fsckObjects false; git config fetch.fsck.hasDotgit ignore
b=$(echo x | git hash-object -w --stdin); t=$(printf '100644 blob %s\t.git\n' $b | git mktree); c=$(git commit-tree -m x "$t"); printf '%s\n%s\n' "$t" "$c" > list; git update-ref refs/heads/evil "$c"
