#!/bin/bash
# class: git
# title: an unknown format and unknown extensions
# expects: safe
# kept: new
echo x > new; printf '[core]\n\trepositoryFormatVersion = 99\n[extensions]\n\trefStorage = reftable\n\tunknown = x\n' >> .git/config
