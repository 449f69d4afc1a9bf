#!/bin/bash
# class: link
# title: a commit with a link outside, checked out from the branch
# expects: safe
# gone: inner-abs
ln -s "$OUTSIDE/file" inner-abs; git add -A; git commit -q -m 'A link'; rm inner-abs; git rm -q --cached inner-abs; git commit -q -m 'No link'
