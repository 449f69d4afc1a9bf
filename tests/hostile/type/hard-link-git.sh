#!/bin/bash
# class: type
# title: a hard link to a file of .git
# expects: safe
# kept: cfg
ln .git/config cfg; git config core.fsmonitor "$TRAP"
