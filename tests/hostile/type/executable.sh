#!/bin/bash
# class: type
# title: a file that becomes executable, and one that ceases to be
# expects: safe
# kept: a
chmod +x a; chmod -x run.sh
