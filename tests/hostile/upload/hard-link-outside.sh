#!/bin/bash
# class: upload
# title: packed refs and odd files of .git stay out
# expects: safe
# runs: checkout
# missing: .git/FETCH_HEAD
# missing: .git/ORIG_HEAD
# absent: upl0ad-fetch-1234
printf '%s\t\tbranch x of https://u:upl0ad-fetch-1234@localhost\n' "$(git rev-parse HEAD)" > .git/FETCH_HEAD; git rev-parse HEAD > .git/ORIG_HEAD
