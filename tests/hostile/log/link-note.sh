#!/bin/bash
# class: log
# title: commands in the names and targets of links that are reported
# expects: safe
ln -s '/::error::INJECTED' '::warning::INJECTED'; ln -s "$(printf '/x\n::error::INJECTED')" "$(printf 'y\n::error::INJECTED')"; ln -s "$(printf '/\033[2J')" z; git add -A
