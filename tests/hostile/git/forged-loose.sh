#!/bin/bash
# class: git
# title: a loose object under the name of other content
# expects: safe
# kept: new
name=$(echo good | git hash-object --stdin); evil=$(echo evil | git hash-object -w --stdin)
mkdir -p ".git/objects/${name%"${name#??}"}"; cp ".git/objects/${evil%"${evil#??}"}/${evil#??}" ".git/objects/${name%"${name#??}"}/${name#??}"; echo good > new
