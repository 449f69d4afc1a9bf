#!/bin/bash
# class: redaction
# title: words beside a secret are no secret
# expects: safe
# kept: fine
echo 'cnry is a word, and so is MIIE' > fine; echo 'cnry MIIE'
