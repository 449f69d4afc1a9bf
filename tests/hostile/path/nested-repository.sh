#!/bin/bash
# class: path
# title: a repository in the repository with a program in its configuration
# expects: refused
mkdir nested; git -C nested init -q; git -C nested config core.fsmonitor "$TRAP"; echo x > nested/x
