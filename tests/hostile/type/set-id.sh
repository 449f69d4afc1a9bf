#!/bin/bash
# class: type
# title: files with set-id bits
# expects: safe
# kept: suid
cp /bin/true suid; chmod 6755 suid; mkdir sgid; chmod 2777 sgid; echo 1 > sgid/x
