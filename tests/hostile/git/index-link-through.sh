#!/bin/bash
# class: git
# title: an index with a link and a file below it
# expects: safe
blob=$(printf '%s' "$OUTSIDE/dir" | git hash-object -w --stdin); git update-index --add --cacheinfo "120000,$blob,thru"; echo x > new
