#!/bin/bash
# class: git
# title: configuration of a submodule below .git/modules
# expects: safe
mkdir -p .git/modules/s; printf '[core]\n\tfsmonitor = %s\n\tworktree = ../../../s\n' "$TRAP" > .git/modules/s/config; echo x > new
