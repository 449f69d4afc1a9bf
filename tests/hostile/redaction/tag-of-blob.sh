#!/bin/bash
# class: redaction
# title: in a blob that only a tag reaches
# expects: secret
git tag leak "$(printf '%s\n' "$CANARY" | git hash-object -w --stdin)"
