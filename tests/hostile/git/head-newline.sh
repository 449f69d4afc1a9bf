#!/bin/bash
# class: git
# title: HEAD holds a second line
# expects: refused
printf 'ref: refs/heads/main\n[core]\nfsmonitor=x\n' > .git/HEAD
