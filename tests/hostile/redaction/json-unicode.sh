#!/bin/bash
# class: redaction
# title: every character as \u
# expects: safe
printf '%s' "$CANARY" | perl -CS -ne 'print "x ", map({sprintf "\\u%04x", ord} split //), "\n"; print "x ", map({sprintf "\\u%04X", ord} split //), "\n"'
