#!/bin/bash
# class: git
# title: a remote helper that runs a program
# expects: safe
git config protocol.ext.allow always; git config remote.origin.url "ext::$TRAP"; git config branch.main.remote origin; echo x > new
