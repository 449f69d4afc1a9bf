#!/bin/bash
# class: git
# title: grafts rewrite history
# expects: safe
git commit -q --allow-empty -m x; mkdir -p .git/info; git rev-parse HEAD > .git/info/grafts; echo x > new
