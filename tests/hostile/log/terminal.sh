#!/bin/bash
# class: log
# title: sequences that move the cursor, set the title, the clipboard and links
# expects: safe
printf 'x\n\033[2J\033[H\033[1A\033[2K\033]0;INJECTED\007\033]52;c;SU5KRUNURUQ=\007\033]8;;http://evil\033\\link\033]8;;\033\\\033P+q\033\\\033[?1049h\033[6n\033c\n'
