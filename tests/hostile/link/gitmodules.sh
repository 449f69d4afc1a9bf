#!/bin/bash
# class: link
# title: .gitmodules, .gitattributes and .gitignore as links
# expects: safe
# gone: .gitmodules
# gone: .gitattributes
# gone: .gitignore
ln -s b .gitattributes; ln -s a .gitignore; git add -A -f; ln -s a .gitmodules
