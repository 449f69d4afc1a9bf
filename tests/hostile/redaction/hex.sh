#!/bin/bash
# class: redaction
# title: hexadecimal
# expects: safe
printf '%s' "$CANARY" | od -An -tx1 | tr -d ' \n'; echo; printf '%s' "$CANARY" | od -An -tx1 | tr -d ' \n' | tr a-f A-F; echo
