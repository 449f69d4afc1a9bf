#!/usr/bin/env bash
# Fetches an issue for the agent `code`, when somebody who may set labels has asked for that.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
source "$lib/forge.sh"
source "$lib/issue.sh"
source "$lib/change.sh"

issue_input

label=${CODE_LABEL-agent-code}
if [[ -n $label ]] && ! has_label "$work/issue.json" "$label"; then
  skip "issue $issue does not have the label $label (CODE_LABEL)"
fi
repo=${FULLSEND_TARGET_REPO_DIR:?is set by fullsend}
base=$(in_repo rev-parse --verify HEAD)
branch=${TARGET_BRANCH:-$(default_branch)}
in_repo check-ref-format --branch "$branch" >/dev/null || die "TARGET_BRANCH is no name of a branch"
jq -n --argjson number "$issue" --arg base "$base" --arg branch "$branch" \
  '{kind: "issue", number: $number, base_commit: $base, base_branch: $branch}' >"$input/context.json"
note "issue $issue, to be done on $branch at ${base:0:12}"
