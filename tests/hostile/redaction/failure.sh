#!/bin/bash
# class: redaction
# title: in the last words of an agent that fails
# expects: failed
echo "cannot log in with $CANARY" >&2; exit 9
