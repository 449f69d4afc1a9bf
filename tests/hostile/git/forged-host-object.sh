#!/bin/bash
# class: git
# title: an object of the host is overwritten
# expects: safe
name=$(git rev-parse HEAD:a); evil=$(echo evil | git hash-object -w --stdin)
f=".git/objects/${name%"${name#??}"}/${name#??}"; mkdir -p "${f%/*}"; rm -f "$f"; cp ".git/objects/${evil%"${evil#??}"}/${evil#??}" "$f"; echo x > new
