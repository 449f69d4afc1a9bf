#!/bin/bash
# class: git
# title: a smudge filter
# expects: safe
# kept: .gitattributes
echo '* filter=x' > .gitattributes; echo x > new; git add -A; git commit -q -m x; git config filter.x.smudge "$TRAP"
