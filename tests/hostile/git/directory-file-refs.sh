#!/bin/bash
# class: git
# title: branches that cannot stand beside each other
# expects: refused
mkdir -p .git/refs/heads/other; rm -f .git/refs/heads/other/x; git rev-parse HEAD > .git/refs/heads/zz; h=$(git rev-parse HEAD); echo "$h refs/heads/zz/top" >> .git/packed-refs
