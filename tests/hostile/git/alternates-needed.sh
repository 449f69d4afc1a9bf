#!/bin/bash
# class: git
# title: a commit whose objects are only in an alternate
# expects: refused
mkdir -p /tmp/alt; echo x > new; git add new
GIT_OBJECT_DIRECTORY=/tmp/alt GIT_ALTERNATE_OBJECT_DIRECTORIES=$PWD/.git/objects git commit -q --allow-empty -m x
