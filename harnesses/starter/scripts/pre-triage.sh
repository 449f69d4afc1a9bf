#!/usr/bin/env bash
# Fetches an issue for the agent `triage`. See docs/guide/harness-suite.md for its variables.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
source "$lib/forge.sh"
source "$lib/issue.sh"

issue_input

open_issues "$work/open.json"
jq --argjson own "$issue" '[.[] | select(.number != $own)]' "$work/open.json" >"$input/open-issues.json"
allowed_labels >"$input/allowed-labels.json"
jq -n --argjson number "$issue" '{kind: "issue", number: $number}' >"$input/context.json"
note "issue $issue, $(jq length "$input/comments.json") comment(s)"
