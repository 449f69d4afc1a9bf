#!/bin/bash
# class: git
# title: core.sshCommand, and a remote that uses it
# expects: safe
git config core.sshCommand "$TRAP"; git config remote.origin.url ssh://localhost/x; git config remote.pushDefault origin; echo x > new
