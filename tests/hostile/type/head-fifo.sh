#!/bin/bash
# class: type
# title: .git/HEAD is a named pipe, at which git would wait for ever
# expects: safe
# kept: fine
echo 1 > fine; rm .git/HEAD; mkfifo .git/HEAD
