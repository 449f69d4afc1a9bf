#!/usr/bin/env bash
# Runs after each iteration of `triage`, in iteration-N/: what the schema cannot say. What is printed is told to the agent.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

allowed=${FULLSEND_RUN_DIR:?is set by fullsend}/agent-input/allowed-labels.json
jq -r --slurpfile allowed "$allowed" '.labels[] | select(. as $name | $allowed[0] | index($name) | not) | .[0:100]' \
  output/agent-result.json | head -n 10 >"$work/strange"
if [[ -s $work/strange ]]; then
  note "these labels are not in allowed-labels.json: $(paste -sd, "$work/strange")"
  exit 1
fi
if [[ $(jq -r '.action == "duplicate" and .duplicate_of == null' output/agent-result.json) == true ]]; then
  note "a duplicate needs the number of the other issue in duplicate_of"
  exit 1
fi
