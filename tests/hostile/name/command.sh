#!/bin/bash
# class: name
# title: workflow commands as names
# expects: safe
# kept: fine
echo 1 > '::error::INJECTED'; echo 1 > "$(printf 'x\n::set-output name=INJECTED::y')"; echo 1 > '##[error]INJECTED'; echo 1 > fine; git add -A; git commit -q -m names
