#!/bin/bash
# class: git
# title: attributes that change how text is read
# expects: safe
# kept: new
printf "*.wide working-tree-encoding=UTF-16LE\n* eol=crlf ident\n*.bin export-subst\n" > .gitattributes; printf "x" > new; git config core.autocrlf true; git config core.safecrlf true
