#!/bin/bash
# class: path
# title: .git becomes a file that points elsewhere
# expects: refused
mv .git ../elsewhere; echo "gitdir: $(realpath ../elsewhere)" > .git
