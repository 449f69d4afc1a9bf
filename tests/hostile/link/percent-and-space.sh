#!/bin/bash
# class: link
# title: a link with an odd target that stays inside
# expects: safe
# kept: odd link
mkdir 'sp ace'; echo 1 > 'sp ace/%s $(x)'; ln -s 'sp ace/%s $(x)' 'odd link'; git add -A
