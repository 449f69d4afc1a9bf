#!/bin/bash
# class: name
# title: a file becomes a directory and a directory a file
# expects: safe
# kept: a/x
rm a; mkdir a; echo 1 > a/x; rm -r dir; echo 1 > dir
