#!/bin/bash
# class: git
# title: a pack that is cut off
# expects: refused
echo x > new; git add new; git commit -q -m x; git repack -adq; for p in .git/objects/pack/*.pack; do chmod u+w "$p"; truncate -s -30 "$p"; done
