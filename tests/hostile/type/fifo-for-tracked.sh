#!/bin/bash
# class: type
# title: a named pipe in place of a tracked file
# expects: safe
# kept: fine
rm a; mkfifo a; echo 1 > fine
