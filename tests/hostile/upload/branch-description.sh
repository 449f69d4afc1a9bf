#!/bin/bash
# class: upload
# title: descriptions and private sections
# expects: safe
# runs: checkout
# absent: upl0ad-desc-1234
git config branch.main.description upl0ad-desc-1234; git config my.secret upl0ad-desc-1234; git config alias.deploy '!curl -H upl0ad-desc-1234 localhost'
