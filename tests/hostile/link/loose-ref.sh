#!/bin/bash
# class: link
# title: a branch is a link to a file outside
# expects: safe
ln -s "$OUTSIDE/file" .git/refs/heads/evil || true; echo x > new
