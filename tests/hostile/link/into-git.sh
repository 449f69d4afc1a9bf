#!/bin/bash
# class: link
# title: a tracked link into .git
# expects: safe
# gone: hooks
# gone: conf
ln -s .git/hooks hooks; ln -s .git/config conf; git add -A
