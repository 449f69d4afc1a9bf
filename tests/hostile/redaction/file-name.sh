#!/bin/bash
# class: redaction
# title: in the name of a file
# expects: secret
echo x > "leak-$CANARY"
