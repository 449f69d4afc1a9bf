#!/bin/bash
# class: git
# title: a configuration that includes a file of the tree
# expects: safe
# kept: conf
printf '[core]\n\tfsmonitor = %s\n\thooksPath = h\n' "$TRAP" > conf; git config include.path ../conf
