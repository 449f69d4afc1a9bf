#!/bin/bash
# class: git
# title: aliases for built-in and new commands
# expects: safe
git config alias.status "!$TRAP"; git config alias.st "!$TRAP"; git config alias.another "!$TRAP"; git config help.autocorrect immediate; echo x > new
