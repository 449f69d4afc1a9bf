#!/bin/bash
# class: git
# title: a forged shallow file cuts history
# expects: safe
git commit -q --allow-empty -m x; git rev-parse HEAD > .git/shallow; echo x > new
