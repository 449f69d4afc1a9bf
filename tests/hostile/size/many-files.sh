#!/bin/bash
# class: size
# title: two thousand small files
# expects: safe
# kept: many/f1999
mkdir many; i=0; while [ $i -lt 2000 ]; do : > many/f$i; i=$((i+1)); done
