#!/bin/bash
# class: size
# title: a sparse file of 8 TiB
# expects: refused
truncate -s 8T huge
