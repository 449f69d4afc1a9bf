#!/bin/bash
# class: git
# title: a clean filter, wired by .gitattributes
# expects: safe
# kept: .gitattributes
git config filter.x.clean "$TRAP"; echo '* filter=x' > .gitattributes; echo x > new
