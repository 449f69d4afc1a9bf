#!/bin/bash
# class: git
# title: refs/replace shows another commit
# expects: safe
# kept: new
echo evil > a; git commit -q -a -m other; echo x > new; git add new; git commit -q -m x; git replace HEAD~1 HEAD~2
