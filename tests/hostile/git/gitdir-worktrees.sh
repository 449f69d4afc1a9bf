#!/bin/bash
# class: git
# title: forged linked worktrees
# expects: safe
mkdir -p .git/worktrees/x; echo "$OUTSIDE/.git" > .git/worktrees/x/gitdir; echo ../.. > .git/worktrees/x/commondir; echo 'ref: refs/heads/main' > .git/worktrees/x/HEAD; echo x > new
