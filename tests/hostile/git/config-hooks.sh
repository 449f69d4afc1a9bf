#!/bin/bash
# class: git
# title: hooks that the configuration defines
# expects: safe
# kept: new
git config hook.x.command "$TRAP"; git config hook.x.event pre-commit; git config --add hook.x.event post-commit; echo x > new
