#!/bin/bash
# class: git
# title: a diff driver's command
# expects: safe
echo edit >> a; echo '* diff=x' > .gitattributes; git config diff.x.command "$TRAP"
