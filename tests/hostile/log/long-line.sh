#!/bin/bash
# class: log
# title: a command behind 16 kB, where a line is cut
# expects: safe
head -c 16384 /dev/zero | tr '\0' x; echo '::error::INJECTED'; head -c 16383 /dev/zero | tr '\0' x; echo '::error::INJECTED'; head -c 65536 /dev/zero | tr '\0' x; printf '\r::error::INJECTED\n'
