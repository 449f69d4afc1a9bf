#!/bin/bash
# class: git
# title: objects/info/alternates and http-alternates to a host path
# expects: safe
# kept: new
echo x > new; git add new; git commit -q -m x; printf '%s\n' "$OUTSIDE/.git/objects" > .git/objects/info/alternates; echo http://localhost:1 > .git/objects/info/http-alternates
