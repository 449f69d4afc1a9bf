#!/bin/bash
# class: git
# title: a .gitmodules whose url is an option (CVE-2018-17456)
# expects: safe
# kept: new
printf '[submodule "x"]\n\tpath = x\n\turl = -u./payload\n' > .gitmodules; echo x > new
