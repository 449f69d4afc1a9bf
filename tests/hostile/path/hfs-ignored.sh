#!/bin/bash
# class: path
# title: .g ZWNJ it, which HFS+ takes for .git
# expects: refused
d=$(printf '.g\342\200\214it'); mkdir "$d"; echo x > "$d/config"
