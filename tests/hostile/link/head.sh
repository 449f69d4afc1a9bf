#!/bin/bash
# class: link
# title: .git/HEAD is a link to a file outside
# expects: safe
# kept: new
git commit -q --allow-empty -m x; echo x > new; rm .git/HEAD; ln -s "$OUTSIDE/file" .git/HEAD
