#!/bin/bash
# class: upload
# title: credentials in the configuration of a submodule
# expects: safe
# runs: checkout
# absent: upl0ad-mod-1234
mkdir -p .git/modules/s; printf '[remote "origin"]\n\turl = https://u:upl0ad-mod-1234@localhost/x\n' > .git/modules/s/config
