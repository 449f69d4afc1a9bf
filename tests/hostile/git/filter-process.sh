#!/bin/bash
# class: git
# title: a filter process that is required
# expects: safe
# kept: .gitattributes
echo '* filter=lfs' > .gitattributes; echo x > new; git add -A; git commit -q -m x; git config filter.lfs.process "$TRAP"; git config filter.lfs.required true
