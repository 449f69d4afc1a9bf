#!/bin/bash
# class: link
# title: a relative link that climbs out
# expects: safe
# gone: up
ln -s ../../../../../../../../etc/passwd up; git add up
