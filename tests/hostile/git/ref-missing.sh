#!/bin/bash
# class: git
# title: a branch of an object that does not exist
# expects: refused
echo 2222222222222222222222222222222222222222 > .git/refs/heads/evil
