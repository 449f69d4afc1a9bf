#!/bin/bash
# class: log
# title: commands in the names that a refusal lists
# expects: refused
mkdir '.GIT'; echo 1 > '.GIT/::error::INJECTED'; echo 1 > "$(printf '.GIT/x\n::error::INJECTED')"; echo 1 > "$(printf '.GIT/x\r##[error]INJECTED\033[2J')"
