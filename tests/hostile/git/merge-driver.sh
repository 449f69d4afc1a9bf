#!/bin/bash
# class: git
# title: a merge driver and mergetools
# expects: safe
git config merge.x.driver "$TRAP"; git config mergetool.x.cmd "$TRAP"; git config difftool.x.cmd "$TRAP"; git config merge.tool x; echo '* merge=x' > .gitattributes
