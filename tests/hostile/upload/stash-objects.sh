#!/bin/bash
# class: upload
# title: the content of a stash
# expects: safe
# runs: checkout
# missing: .git/refs/stash
echo upl0ad-stash >> a; git stash -q
