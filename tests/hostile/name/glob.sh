#!/bin/bash
# class: name
# title: names of pathspec magic and globs
# expects: safe
# kept: fine
echo 1 > ':(top)x'; echo 1 > ':!a'; echo 1 > '*'; echo 1 > '[a]'; echo 1 > '?'; echo 1 > '#x'; echo 1 > '!x'; echo 1 > fine
