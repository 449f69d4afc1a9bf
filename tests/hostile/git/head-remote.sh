#!/bin/bash
# class: git
# title: HEAD is a remote branch
# expects: refused
git update-ref refs/remotes/origin/x HEAD; echo 'ref: refs/remotes/origin/x' > .git/HEAD
