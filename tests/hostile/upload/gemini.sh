#!/bin/bash
# class: upload
# title: servers in .gemini/settings.json
# expects: safe
# runs: checkout
# absent: upl0ad-agent-cmd
mkdir .gemini; printf '{"mcpServers":{"x":{"command":"upl0ad-agent-cmd"}}}\n' > .gemini/settings.json; git add -A; git commit -q -m gemini
