#!/bin/bash
# class: size
# title: a commit message of 3 MB on one line
# expects: safe
# says: the post-script is done
head -c 3000000 /dev/zero | tr '\0' x > /tmp/m; git commit -q --allow-empty -F /tmp/m
