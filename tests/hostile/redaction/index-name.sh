#!/bin/bash
# class: redaction
# title: in a name that only the index has
# expects: secret
b=$(echo x | git hash-object -w --stdin); git update-index --add --cacheinfo "100644,$b,leak-$CANARY"
