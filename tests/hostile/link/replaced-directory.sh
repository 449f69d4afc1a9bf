#!/bin/bash
# class: link
# title: a tracked directory becomes a link outside
# expects: safe
rm -r dir; ln -s "$OUTSIDE/dir" dir; git add -A
