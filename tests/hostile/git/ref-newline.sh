#!/bin/bash
# class: git
# title: a ref whose name holds a newline
# expects: refused
git rev-parse HEAD > "$(printf '.git/refs/heads/new\nline')"
