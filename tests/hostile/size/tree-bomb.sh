#!/bin/bash
# class: size
# title: a branch of a few objects that stands for a billion files
# expects: refused
blob=$(echo x | git hash-object -w --stdin)
tree=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '100644 blob %s\tf%d\n' "$blob" "$i"; done | git mktree)
for level in 1 2 3 4 5 6 7 8; do
  tree=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\td%d\n' "$tree" "$i"; done | git mktree)
done
git update-ref refs/heads/bomb "$(git -c user.name=a -c user.email=b commit-tree -m x "$tree")"
