#!/bin/bash
# class: git
# title: HEAD leads outside of refs
# expects: refused
echo 'ref: ../../outside' > .git/HEAD
