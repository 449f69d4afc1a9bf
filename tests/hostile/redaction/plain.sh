#!/bin/bash
# class: redaction
# title: the secret as it is, on both streams
# expects: safe
echo "the token is $CANARY!"; echo "$CANARY" >&2; echo "$KEY"
