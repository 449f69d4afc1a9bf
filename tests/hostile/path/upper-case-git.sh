#!/bin/bash
# class: path
# title: .GIT beside .git
# expects: refused
mkdir .GIT; printf '[core]\n\tfsmonitor = %s\n' "$TRAP" > .GIT/config
