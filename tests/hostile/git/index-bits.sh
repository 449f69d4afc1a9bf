#!/bin/bash
# class: git
# title: an index with intent-to-add and fsmonitor-valid bits
# expects: safe
echo x > new; git add -N new; git update-index --fsmonitor 2>/dev/null || true; git update-index --fsmonitor-valid a 2>/dev/null || true
