#!/bin/bash
# class: path
# title: .git with trailing dots and spaces, which NTFS drops
# expects: refused
mkdir '.git. .'; echo x > '.git. ./config'
