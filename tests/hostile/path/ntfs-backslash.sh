#!/bin/bash
# class: path
# title: a name that holds a backslash and .git
# expects: refused
echo x > 'x\.git\config'
