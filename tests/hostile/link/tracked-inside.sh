#!/bin/bash
# class: link
# title: tracked links that stay inside come back, also one that dangles
# expects: safe
# kept: good
# kept: dir/back
# kept: dangling
ln -s dir/inner good; ln -s ../a dir/back; ln -s not/there dangling; git add -A
