#!/bin/bash
# class: type
# title: a named pipe in .git
# expects: safe
# kept: fine
mkfifo .git/refs/heads/pipe .git/MERGE_HEAD; echo 1 > fine
