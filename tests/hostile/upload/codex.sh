#!/bin/bash
# class: upload
# title: servers and notifications in .codex/config.toml
# expects: safe
# runs: checkout
# absent: upl0ad-agent-cmd
mkdir .codex; printf 'notify = ["upl0ad-agent-cmd"]\n[mcp_servers.x]\ncommand = "upl0ad-agent-cmd"\n' > .codex/config.toml; git add -A; git commit -q -m codex
