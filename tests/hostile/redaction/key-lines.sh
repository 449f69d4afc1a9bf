#!/bin/bash
# class: redaction
# title: the lines of a key, apart, indented and quoted
# expects: safe
printf '%s\n' "$KEY" | sed 's/^/   > /'; printf '%s' "$KEY" | tr '\n' ' '; echo
