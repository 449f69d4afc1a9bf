#!/bin/bash
# class: path
# title: .git with a byte order mark inside
# expects: refused
d=$(printf '.gi\357\273\277t'); mkdir "$d"; echo x > "$d/config"
