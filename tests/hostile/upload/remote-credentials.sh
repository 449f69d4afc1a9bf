#!/bin/bash
# class: upload
# title: a token in the URL of a remote
# expects: safe
# runs: checkout
# absent: upl0ad-t0ken-1234
git config remote.up.url https://x-access-token:upl0ad-t0ken-1234@localhost/x.git
git config remote.up.pushurl https://upl0ad-t0ken-1234@localhost/x.git
