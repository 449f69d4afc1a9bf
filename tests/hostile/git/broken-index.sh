#!/bin/bash
# class: git
# title: an index that cannot be read
# expects: safe
# kept: new
echo x > new; echo rubbish > .git/index
