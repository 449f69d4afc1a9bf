#!/bin/bash
# class: git
# title: an index that hides changes by skip-worktree
# expects: safe
echo evil > a; git update-index --skip-worktree a; echo x > new
