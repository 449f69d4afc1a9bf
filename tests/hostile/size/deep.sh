#!/bin/bash
# class: size
# title: directories 200 levels deep
# expects: refused
d=.; i=0; while [ $i -lt 200 ]; do d=$d/d; i=$((i+1)); done; mkdir -p $d; echo 1 > $d/x
