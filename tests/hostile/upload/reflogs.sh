#!/bin/bash
# class: upload
# title: reflogs, stashes and messages of other work
# expects: safe
# runs: checkout
# absent: upl0ad-log-1234
# missing: .git/refs/stash
# missing: .git/logs/refs/stash
echo edit >> a; git stash -q -m 'upl0ad-log-1234'; git commit -q --allow-empty -m x; git reset -q --soft HEAD~1; echo upl0ad-log-1234 > .git/COMMIT_EDITMSG; echo upl0ad-log-1234 > .git/description
