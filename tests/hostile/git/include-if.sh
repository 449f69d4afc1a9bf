#!/bin/bash
# class: git
# title: conditional includes
# expects: safe
printf '[core]\n\tfsmonitor = %s\n' "$TRAP" > conf; git config 'includeIf.gitdir:/.path' ../conf; git config 'includeIf.onbranch:**.path' ../conf; git config 'includeIf.hasconfig:remote.*.url:**.path' ../conf
