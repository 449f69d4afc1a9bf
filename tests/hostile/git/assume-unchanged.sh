#!/bin/bash
# class: git
# title: an index that hides changes by assume-unchanged
# expects: safe
# kept: new
echo evil > a; git update-index --assume-unchanged a; echo x > new
