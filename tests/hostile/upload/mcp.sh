#!/bin/bash
# class: upload
# title: servers in .mcp.json (CVE-2025-59536)
# expects: safe
# runs: checkout
# absent: upl0ad-agent-cmd
printf '{"mcpServers":{"x":{"command":"upl0ad-agent-cmd","args":[]}}}\n' > .mcp.json; git add -A; git commit -q -m mcp
