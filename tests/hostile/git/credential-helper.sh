#!/bin/bash
# class: git
# title: a credential helper and core.askPass
# expects: safe
git config credential.helper "!$TRAP"; git config core.askPass "$TRAP"; git config credential.https://localhost.helper "!$TRAP"; echo x > new
