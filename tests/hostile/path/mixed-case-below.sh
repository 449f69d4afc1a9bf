#!/bin/bash
# class: path
# title: .gIt below a directory
# expects: refused
mkdir -p dir/.gIt; echo x > dir/.gIt/config
