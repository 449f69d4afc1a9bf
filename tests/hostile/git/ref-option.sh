#!/bin/bash
# class: git
# title: a branch that looks like an option
# expects: refused
git rev-parse HEAD > .git/refs/heads/--upload-pack=touch
