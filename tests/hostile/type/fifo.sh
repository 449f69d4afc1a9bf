#!/bin/bash
# class: type
# title: a named pipe that would block a reader
# expects: safe
# gone: pipe
# kept: fine
mkfifo pipe; echo 1 > fine
