#!/bin/bash
# class: git
# title: config.worktree
# expects: safe
git config extensions.worktreeConfig true; printf '[core]\n\tfsmonitor = %s\n' "$TRAP" > .git/config.worktree; echo x > new
