#!/bin/bash
# class: upload
# title: hooks of the host
# expects: safe
# runs: checkout
# missing: .git/hooks/pre-commit
# absent: upl0ad-hook-1234
printf '#!/bin/sh\n# upl0ad-hook-1234\nexit 0\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
