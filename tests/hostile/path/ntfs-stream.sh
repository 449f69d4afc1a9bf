#!/bin/bash
# class: path
# title: .git::$INDEX_ALLOCATION, a stream of NTFS
# expects: refused
mkdir '.git::$INDEX_ALLOCATION'; echo x > '.git::$INDEX_ALLOCATION/config'
