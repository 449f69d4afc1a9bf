#!/bin/bash
# class: upload
# title: an extra header, as CI checkouts leave one
# expects: safe
# runs: checkout
# absent: upl0ad-header-1234
git config http.https://github.com/.extraheader 'AUTHORIZATION: basic upl0ad-header-1234'
