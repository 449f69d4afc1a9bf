#!/bin/bash
# class: git
# title: editors
# expects: safe
git config core.editor "$TRAP"; git config sequence.editor "$TRAP"; git config commit.verbose true; git config commit.template conf; echo x > new
