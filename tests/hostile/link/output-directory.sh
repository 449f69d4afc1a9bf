#!/bin/bash
# class: link
# title: the output directory is a link outside
# expects: safe
rm -rf "$OUT"; ln -s "$OUTSIDE/dir" "$OUT"
