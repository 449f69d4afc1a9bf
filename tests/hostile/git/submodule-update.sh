#!/bin/bash
# class: git
# title: a submodule whose update is a command (CVE-2019-19604)
# expects: safe
printf '[submodule "x"]\n\tpath = x\n\turl = ./x\n\tupdate = !%s\n' "$TRAP" > .gitmodules; git config submodule.x.update "!$TRAP"; git config submodule.x.url ./x; git config submodule.recurse true; echo x > new
