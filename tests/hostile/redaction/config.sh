#!/bin/bash
# class: redaction
# title: in .git/config and a reflog, which stay behind
# expects: safe
git config x.token "$CANARY"; git config user.email "x-$(printf '%s' "$KEY" | sed -n 2p)"; mkdir -p .git/hooks; echo "$CANARY" > .git/hooks/x; echo x > new
