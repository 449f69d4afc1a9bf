#!/bin/bash
# class: git
# title: a symbolic branch that leads outside
# expects: refused
echo 'ref: ../../../../etc/passwd' > .git/refs/heads/sym; echo x > new
