#!/bin/bash
# class: redaction
# title: in the names that a refusal lists
# expects: refused
mkdir .GIT; echo x > ".GIT/$CANARY"
