#!/bin/bash
# class: upload
# title: an included file with credentials, in .git and outside
# expects: safe
# runs: checkout
# absent: upl0ad-incl-1234
printf '[http]\n\textraheader = upl0ad-incl-1234\n' > .git/more; git config include.path more
printf '[http]\n\textraheader = upl0ad-incl-1234\n' > ../home/cred; git config includeIf.gitdir:/.path "$(realpath ../home/cred)"
