#!/bin/bash
# class: log
# title: commands on standard error
# expects: safe
printf '::error::INJECTED\n##[error]INJECTED\n\033[2J\n' >&2; echo fine
