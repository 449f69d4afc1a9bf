#!/bin/bash
# class: redaction
# title: in a packed blob, as a delta
# expects: secret
i=0; while [ $i -lt 500 ]; do echo "line $i"; i=$((i+1)); done > big; git add big; git commit -q -m big; printf '%s\n' "$CANARY" >> big; git commit -q -a -m more; git rm -q big; git commit -q -m gone; git repack -adfq
