#!/bin/bash
# class: git
# title: a commit that is no zlib stream
# expects: refused
git commit -q --allow-empty -m x; name=$(git rev-parse HEAD); f=".git/objects/${name%"${name#??}"}/${name#??}"; chmod u+w "$f"; echo rubbish > "$f"
