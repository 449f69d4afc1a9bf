#!/bin/bash
# class: path
# title: a .git file below a directory
# expects: refused
echo 'gitdir: ../.git' > dir/.git
