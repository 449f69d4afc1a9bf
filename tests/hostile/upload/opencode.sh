#!/bin/bash
# class: upload
# title: servers in opencode.json
# expects: safe
# runs: checkout
# absent: upl0ad-agent-cmd
printf '{"mcp":{"x":{"type":"local","command":["upl0ad-agent-cmd"],"enabled":true}}}\n' > opencode.json; git add -A; git commit -q -m opencode
