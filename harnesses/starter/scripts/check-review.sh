#!/usr/bin/env bash
# Runs after each iteration of `review`, in iteration-N/: the findings are about files of the change.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

diff=${FULLSEND_RUN_DIR:?is set by fullsend}/agent-input/change.diff
jq -r '.findings[].path' output/agent-result.json | sort -u | head -n 50 >"$work/paths"
while IFS= read -r path; do
  if ! grep -qF -- "/$path" "$diff"; then
    note "a finding is about $(printf '%q' "${path:0:200}"), which is not a file of change.diff"
    exit 1
  fi
done <"$work/paths"
if [[ $(jq -r '.verdict == "changes" and (.findings | length) == 0' output/agent-result.json) == true ]]; then
  note "the verdict changes needs at least one finding"
  exit 1
fi
