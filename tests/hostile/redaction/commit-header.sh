#!/bin/bash
# class: redaction
# title: in an unknown header of a commit
# expects: secret
{ printf 'tree %s\nparent %s\nauthor A <a@e> 1 +0000\ncommitter A <a@e> 1 +0000\nx-note ' "$(git rev-parse 'HEAD^{tree}')" "$(git rev-parse HEAD)"; printf '%s\n\nx\n' "$CANARY"; } > /tmp/c
git update-ref refs/heads/main "$(git hash-object -t commit -w /tmp/c)"
