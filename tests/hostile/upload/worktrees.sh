#!/bin/bash
# class: upload
# title: linked worktrees and their state
# expects: safe
# runs: checkout
# missing: .git/worktrees
git worktree add -q ../home/wt other
