#!/bin/bash
# class: git
# title: a branch that holds no object name
# expects: refused
echo '$(touch x)' > .git/refs/heads/evil
