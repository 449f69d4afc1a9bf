#!/bin/bash
# class: git
# title: .git is replaced by a repository without history
# expects: safe
# kept: new
rm -rf .git; git init -q -b main; git config user.name a; git config user.email b; echo x > new; git add -A; git commit -q -m 'Another beginning'
