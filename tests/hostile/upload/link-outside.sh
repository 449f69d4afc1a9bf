#!/bin/bash
# class: upload
# title: a tracked link of the checkout to a file outside
# expects: safe
# runs: checkout
# absent: outside-5b1d9c-kept
ln -s ../outside/file reads; ln -s "$OUTSIDE/dir" reads-dir; git add -A; git commit -q -m links
git rm -q reads reads-dir; git commit -q -m 'no links'
