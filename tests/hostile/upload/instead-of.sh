#!/bin/bash
# class: upload
# title: credentials in url.insteadOf
# expects: safe
# runs: checkout
# absent: upl0ad-url-1234
git config url.https://u:upl0ad-url-1234@localhost/.insteadOf https://localhost/
