#!/bin/bash
# class: link
# title: links in a circle
# expects: safe
# gone: x
# gone: y
# gone: self
ln -s y x; ln -s x y; ln -s self self; git add -A
