#!/bin/bash
# class: upload
# title: an untracked link of the checkout to a directory outside
# expects: safe
# runs: checkout
# absent: outside-5b1d9c-kept
ln -s ../outside/dir data; ln -s ../outside/file data-file; printf 'data\ndata-file\n' >> .git/info/exclude
rm data data-file
