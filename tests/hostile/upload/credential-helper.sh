#!/bin/bash
# class: upload
# title: credential helpers with a stored secret
# expects: safe
# runs: checkout
# absent: upl0ad-help-1234
git config credential.helper '!f() { echo password=upl0ad-help-1234; }; f'; git config credential.https://x.username upl0ad-help-1234
printf 'https://u:upl0ad-help-1234@localhost\n' > .git/credentials
