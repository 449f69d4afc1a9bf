#!/bin/bash
# class: git
# title: a textconv program
# expects: safe
echo edit >> a; echo '* diff=x' > .gitattributes; git config diff.x.textconv "$TRAP"
