#!/bin/bash
# class: git
# title: workflow commands in a diff
# expects: safe
printf '::error::INJECTED\n##[error]INJECTED\n\033[31mx\n\r::warning::INJECTED\n' > a; git commit -q -a -m x
