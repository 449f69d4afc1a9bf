#!/bin/bash
# class: log
# title: commands as names in the output
# expects: safe
echo 1 > "$OUT/::error::INJECTED"; echo 1 > "$OUT/$(printf 'x\n::error::INJECTED')"; mkdir "$OUT/##[error]INJECTED"; echo 1 > "$OUT/##[error]INJECTED/x"
