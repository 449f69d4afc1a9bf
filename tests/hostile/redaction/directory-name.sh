#!/bin/bash
# class: redaction
# title: in the name of an empty directory
# expects: secret
mkdir "leak-$CANARY"
