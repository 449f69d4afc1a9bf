#!/bin/bash
# class: upload
# title: passwords of git's own tools
# expects: safe
# runs: checkout
# absent: upl0ad-smtp-1234
git config sendemail.smtpPass upl0ad-smtp-1234; git config imap.pass upl0ad-smtp-1234; git config http.proxy http://u:upl0ad-smtp-1234@localhost:1; git config http.cookieFile ../cookies; git config github.token upl0ad-smtp-1234
