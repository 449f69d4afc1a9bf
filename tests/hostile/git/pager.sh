#!/bin/bash
# class: git
# title: pagers for every command
# expects: safe
for c in core.pager pager.status pager.diff pager.log pager.add; do git config $c "$TRAP"; done; git config interactive.diffFilter "$TRAP"; echo x > new
