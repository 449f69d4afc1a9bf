#!/bin/bash
# class: git
# title: core.worktree leads outside
# expects: safe
echo x > new; git config core.worktree /
