#!/bin/bash
# class: redaction
# title: in the name of a committed file that a later commit removes
# expects: secret
echo x > "leak-$CANARY"; git add -A; git commit -q -m add; git rm -qr .  --ignore-unmatch >/dev/null; git commit -q --allow-empty -m gone; git checkout -q HEAD~2 -- .; git commit -q -m back
