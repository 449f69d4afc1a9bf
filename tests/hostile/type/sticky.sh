#!/bin/bash
# class: type
# title: directories and files with odd modes
# expects: safe
# kept: fine
mkdir t; chmod 1777 t; echo 1 > t/x; echo 1 > wo; chmod 0622 wo; echo 1 > fine
