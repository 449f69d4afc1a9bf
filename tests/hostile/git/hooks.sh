#!/bin/bash
# class: git
# title: every hook in .git/hooks
# expects: safe
# kept: new
mkdir -p .git/hooks; echo x > new
for hook in applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase \
  post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update reference-transaction push-to-checkout \
  pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman post-index-change; do
  printf '#!/bin/sh\ntouch %s\n' "$MARKER" > .git/hooks/$hook; chmod +x .git/hooks/$hook; done
