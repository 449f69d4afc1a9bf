#!/bin/bash
# class: git
# title: diff.external
# expects: safe
# kept: new
echo edit >> a; echo x > new; git config diff.external "$TRAP"
