#!/bin/bash
# class: redaction
# title: in a binary file
# expects: secret
printf '\000\377%s\000' "$CANARY" > leak.bin
