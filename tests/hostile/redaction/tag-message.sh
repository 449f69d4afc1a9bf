#!/bin/bash
# class: redaction
# title: in the message of a tag
# expects: secret
git tag -a -m "use $CANARY" v9
