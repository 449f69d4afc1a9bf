#!/bin/bash
# class: git
# title: core.fsmonitor with a hook of version 2, and core.untrackedCache
# expects: safe
# kept: new
echo x > new; git config core.fsmonitorHookVersion 2; git config core.untrackedCache true; git config core.fsmonitor "$TRAP"
