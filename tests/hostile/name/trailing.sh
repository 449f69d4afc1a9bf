#!/bin/bash
# class: name
# title: trailing spaces, and names of dots
# expects: safe
# kept: ...
echo 1 > 'end '; echo 1 > ...; echo 1 > '.. '
