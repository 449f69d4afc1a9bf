#!/bin/bash
# class: git
# title: a submodule whose name climbs out (CVE-2018-11235), not committed
# expects: safe
printf '[submodule "../../modules/x"]\n\tpath = x\n\turl = ./x\n' > .gitmodules; mkdir -p .git/modules/x/hooks; printf '#!/bin/sh\ntouch %s\n' "$MARKER" > .git/modules/x/hooks/post-checkout; chmod +x .git/modules/x/hooks/post-checkout
