#!/bin/bash
# class: log
# title: commands on the standard error of an agent that fails
# expects: failed
printf '::error::INJECTED\n##[error]INJECTED\n\033[2J\r::error::INJECTED\n' >&2; exit 3
