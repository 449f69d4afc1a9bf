#!/bin/bash
# class: name
# title: escape sequences in a name
# expects: safe
# kept: fine
echo 1 > "$(printf '\033[2J\033]0;INJECTED\007')"; echo 1 > fine
