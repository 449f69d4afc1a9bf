#!/bin/bash
# class: path
# title: git~1, the short name of .git on NTFS
# expects: refused
mkdir git~1; echo x > git~1/config
