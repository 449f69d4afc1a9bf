#!/bin/bash
# class: git
# title: settings that switch off git's own protection
# expects: safe
git config core.protectHFS false; git config core.protectNTFS false; git config fsck.hasDotgit ignore; git config receive.fsckObjects false; git config transfer.fsckObjects false; git config safe.directory '*'; git config core.symlinks false; echo x > new
