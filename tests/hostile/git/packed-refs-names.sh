#!/bin/bash
# class: git
# title: packed-refs with a name that climbs out
# expects: refused
h=$(git rev-parse HEAD); printf '# pack-refs with: peeled fully-peeled sorted\n%s refs/heads/../../evil\n%s refs/heads/main\n' $h $h > .git/packed-refs
