#!/bin/bash
# class: git
# title: sparse-checkout hides files
# expects: safe
# kept: a
git config core.sparseCheckout true; mkdir -p .git/info; echo '/b' > .git/info/sparse-checkout; git read-tree -mu HEAD; git update-index --no-skip-worktree a; git checkout -q -- a; echo x > new
