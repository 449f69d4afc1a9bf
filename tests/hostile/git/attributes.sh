#!/bin/bash
# class: git
# title: .git/info/attributes, and core.attributesFile
# expects: safe
# kept: new
git config core.attributesFile attr; mkdir -p .git/info; echo '* filter=x diff=x merge=x' | tee attr > .git/info/attributes
git config filter.x.clean cat; git config diff.x.textconv "$TRAP"; echo edit >> a; echo x > new
