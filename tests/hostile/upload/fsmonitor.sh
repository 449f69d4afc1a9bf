#!/bin/bash
# class: upload
# title: a program in the configuration of the checkout does not go in
# expects: safe
# runs: checkout
# absent: upl0ad-prog
git config core.fsmonitor 'false upl0ad-prog'; git config filter.x.clean 'cat upl0ad-prog'; git config core.pager 'less upl0ad-prog'; git config core.fsmonitor false
