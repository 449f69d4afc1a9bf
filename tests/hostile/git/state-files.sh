#!/bin/bash
# class: git
# title: files that say a merge, rebase or bisect is under way
# expects: safe
# kept: new
echo x > new; h=$(git rev-parse HEAD); mkdir -p .git/rebase-merge .git/sequencer; printf 'exec %s\n' "$TRAP" > .git/rebase-merge/git-rebase-todo; echo refs/heads/main > .git/rebase-merge/head-name
echo "$h" > .git/MERGE_HEAD; echo "$h" > .git/CHERRY_PICK_HEAD; echo x > .git/MERGE_MSG; echo x > .git/BISECT_START
