#!/bin/bash
# class: git
# title: core.alternateRefsCommand, with alternates
# expects: safe
git config core.alternateRefsCommand "$TRAP"; mkdir -p /tmp/alt; echo /tmp/alt > .git/objects/info/alternates; echo x > new
