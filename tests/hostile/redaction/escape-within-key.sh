#!/bin/bash
# class: redaction
# title: an escape sequence within a line of the key, on standard error
# expects: safe
l=$(printf '%s' "$KEY" | sed -n 2p); printf 'x %s\033[1m%s y\n' "${l%??????????}" "${l#"${l%??????????}"}" >&2
