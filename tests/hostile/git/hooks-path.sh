#!/bin/bash
# class: git
# title: core.hooksPath to a directory of the tree
# expects: safe
# kept: h/post-commit
mkdir h; for hook in pre-commit post-commit commit-msg post-checkout pre-push reference-transaction post-index-change; do
  printf '#!/bin/sh\ntouch %s\n' "$MARKER" > h/$hook; chmod +x h/$hook; done
git config core.hooksPath h
