#!/bin/bash
# class: redaction
# title: printed byte by byte
# expects: safe
perl -e '$|=1; for (split //, "x $ENV{CANARY} x\n") { print; select undef,undef,undef,0.02 }'
