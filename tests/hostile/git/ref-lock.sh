#!/bin/bash
# class: git
# title: a branch that ends in .lock, which git takes for a lock
# expects: safe
# kept: new
git rev-parse HEAD > .git/refs/heads/main.lock
echo x > new
