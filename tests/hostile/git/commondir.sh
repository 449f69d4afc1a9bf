#!/bin/bash
# class: git
# title: .git/commondir leads elsewhere
# expects: safe
# kept: new
echo x > new; mkdir -p /tmp/common; cp -r .git/. /tmp/common/; git -C /tmp/common config core.fsmonitor "$TRAP"; echo /tmp/common > .git/commondir
