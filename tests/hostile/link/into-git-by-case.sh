#!/bin/bash
# class: link
# title: a tracked link into .GIT, as a case-insensitive file system reads it
# expects: safe
# gone: conf
ln -s .GIT/config conf; git add -A
