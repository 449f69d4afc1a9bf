#!/bin/bash
# class: redaction
# title: in the name of a directory of the output
# expects: secret
mkdir "$OUT/x-$CANARY"; echo x > "$OUT/x-$CANARY/file"
