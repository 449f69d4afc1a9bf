#!/bin/bash
# class: size
# title: sparse files that only together are too large
# expects: refused
i=0; while [ $i -lt 40 ]; do truncate -s 1G "s$i"; i=$((i+1)); done
