#!/bin/bash
# class: git
# title: a branch with escape sequences in its name
# expects: refused
git rev-parse HEAD > "$(printf '.git/refs/heads/\033[2Jx')"
