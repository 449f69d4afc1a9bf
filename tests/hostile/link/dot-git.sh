#!/bin/bash
# class: link
# title: .git becomes a link
# expects: refused
mv .git real; ln -s real .git
