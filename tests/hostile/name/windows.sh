#!/bin/bash
# class: name
# title: names that Windows reserves
# expects: safe
# kept: CON
echo 1 > CON; echo 1 > 'aux.txt'; echo 1 > 'C:'; echo 1 > 'a<b'
