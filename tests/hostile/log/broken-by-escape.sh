#!/bin/bash
# class: log
# title: commands that come together once something is removed
# expects: safe
printf 'x\n:\033[0m:error::INJECTED\n:\342\200\213:error::INJECTED\n:\000:error::INJECTED\n#\033[1m#[error]INJECTED\n##\342\200\215[error]INJECTED\n:\302\255:error::INJECTED\n'
