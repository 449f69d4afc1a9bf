#!/bin/bash
# class: git
# title: a commit that reaches a forged object
# expects: refused
echo good > good; git add good; git commit -q -m x; name=$(git rev-parse HEAD:good); evil=$(echo evil | git hash-object -w --stdin)
f=".git/objects/${name%"${name#??}"}/${name#??}"; chmod u+w "$f"; cat ".git/objects/${evil%"${evil#??}"}/${evil#??}" > "$f"
