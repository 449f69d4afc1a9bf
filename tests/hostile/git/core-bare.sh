#!/bin/bash
# class: git
# title: core.bare and an odd format version
# expects: safe
# kept: new
echo x > new; git config core.bare true
