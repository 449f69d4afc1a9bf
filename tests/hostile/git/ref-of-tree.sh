#!/bin/bash
# class: git
# title: a branch that is no commit
# expects: refused
git rev-parse 'HEAD^{tree}' > .git/refs/heads/tree
