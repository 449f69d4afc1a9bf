#!/bin/bash
# class: link
# title: links in the output directory
# expects: safe
ln -s "$OUTSIDE/file" "$OUT/x"; ln -s ../../../../etc/passwd "$OUT/y"; echo kept > "$OUT/z"
