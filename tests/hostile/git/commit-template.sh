#!/bin/bash
# class: git
# title: message files and mailmaps that git shows
# expects: safe
printf 'x\n' > .git/COMMIT_EDITMSG; printf 'Evil <evil@x> <test@example.com>\n' > .mailmap; git config mailmap.file .mailmap; git config format.pretty 'INJECTED %%h'; echo x > new
