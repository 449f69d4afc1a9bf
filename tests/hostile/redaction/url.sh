#!/bin/bash
# class: redaction
# title: URL-encoded
# expects: safe
printf '%s' "$CANARY" | perl -ne 's/([^A-Za-z0-9._~-])/sprintf "%%%02X", ord $1/ge; print "https://x/?t=$_\n"; s/%([0-9A-F]{2})/lc "%$1"/ge; print "https://x/?t=$_\n"'
