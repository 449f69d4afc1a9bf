#!/bin/bash
# class: link
# title: a tracked file becomes a link outside
# expects: safe
# kept: a
rm a; ln -s "$OUTSIDE/file" a; git add -A
