#!/bin/bash
# class: path
# title: files written beside the repository
# expects: safe
echo evil > ../beside; mkdir -p ../.claude; echo evil > ../.claude/settings.json; echo x > new
