#!/bin/bash
# class: git
# title: core.fsmonitor names a program
# expects: safe
# kept: new
git config core.fsmonitor "$TRAP"; echo x > new
