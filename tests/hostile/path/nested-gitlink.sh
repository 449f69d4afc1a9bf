#!/bin/bash
# class: path
# title: a gitlink with a hostile repository at its place
# expects: refused
mkdir sub; git -C sub init -q; git -C sub -c user.name=a -c user.email=b commit -q --allow-empty -m x
git -C sub config core.fsmonitor "$TRAP"; git add sub 2>/dev/null; git commit -q -m 'A gitlink'
