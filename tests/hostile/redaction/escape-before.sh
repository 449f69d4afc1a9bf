#!/bin/bash
# class: redaction
# title: directly behind an escape sequence
# expects: safe
printf 'x \033[31m%s\033[0m y\n' "$CANARY"
