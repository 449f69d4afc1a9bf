#!/bin/bash
# class: link
# title: the repository itself becomes a link
# expects: refused
cd ..; mv repo real; ln -s real repo
