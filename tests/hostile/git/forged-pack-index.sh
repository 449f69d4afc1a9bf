#!/bin/bash
# class: git
# title: a pack whose index lies
# expects: safe
echo x > new; git add new; git commit -q -m x; git repack -adq
for i in .git/objects/pack/*.idx; do chmod u+w "$i"; printf 'xxxxxxxx' | dd of="$i" bs=1 seek=1040 conv=notrunc 2>/dev/null; done
