#!/bin/bash
# class: size
# title: a blob of 300 MB of zeros that packs to 300 kB
# expects: safe
# says: the post-script is done
head -c 300000000 /dev/zero | git hash-object -w --stdin > /dev/null; echo x > new
