#!/bin/bash
# class: git
# title: .git/info/exclude hides files
# expects: safe
# kept: hidden
mkdir -p .git/info; echo '*' > .git/info/exclude; echo x > hidden
