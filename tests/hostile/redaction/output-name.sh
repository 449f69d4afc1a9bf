#!/bin/bash
# class: redaction
# title: in the name of an artefact
# expects: secret
echo x > "$OUT/$CANARY"
