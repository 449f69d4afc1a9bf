#!/usr/bin/env bash
# Publishes what the agent `triage` found: one comment, and labels of TRIAGE_LABELS.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
source "$lib/forge.sh"
source "$lib/issue.sh"

forge_setup
use_token write
result=$(result_file)
issue=$(context .number)
number ISSUE_NUMBER "$issue"

# Labels are chosen by name from our list; what else the agent wrote is dropped.
allowed_labels >"$work/allowed.json"
jq --slurpfile allowed "$work/allowed.json" '[.labels[]? | select(type == "string")]
  | map(select(. as $name | $allowed[0] | index($name))) | unique' "$result" >"$work/chosen.json"

json '"<!-- fullsend:triage -->\n"
  + (.comment | safe_text(12000))
  + (if (.duplicate_of | type) == "number" and .duplicate_of > 0 then "\n\nThis looks like a duplicate of #\(.duplicate_of | floor)." else "" end)
  + "\n\n<sub>\($footer)</sub>\n"' -r --arg footer "$(footer)" "$result" >"$work/body.md"
set_comment issue "$issue" triage "$work/body.md"
add_labels "$issue" "$work/chosen.json"
