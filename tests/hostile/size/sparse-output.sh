#!/bin/bash
# class: size
# title: a sparse file of 100 GB in the output
# expects: refused
# slow: gigabytes of zeros travel before the host ends it
truncate -s 100G "$OUT/huge"
