#!/bin/bash
# class: git
# title: a commit whose blobs a promisor is to fetch
# expects: refused
git config remote.p.url "ext::$TRAP"; git config remote.p.promisor true; git config extensions.partialClone p; git config protocol.ext.allow always
t=$(printf '100644 blob 3333333333333333333333333333333333333333\tx\n' | git mktree --missing); git update-ref refs/heads/evil "$(git commit-tree -m x "$t")"
