#!/bin/bash
# class: git
# title: forged reflogs
# expects: safe
# kept: new
mkdir -p .git/logs/refs/heads; printf '0 1 x\n' > .git/logs/HEAD; printf 'rubbish' > .git/logs/refs/heads/main; echo x > new
