#!/usr/bin/env bash
# Publishes what the agent `code` made: the branch fullsend/issue-N, one pull request or merge request for it, and a
# comment on the issue.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
source "$lib/forge.sh"
source "$lib/change.sh"

forge_setup
use_token write
result=$(result_file)
issue=$(context .number)
number ISSUE_NUMBER "$issue"
base=$(context .base_commit)
base_branch=$(context .base_branch)
branch=fullsend/issue-$issue
change=

comment() {
  json '"<!-- fullsend:code -->\n" + $head + "\n\n" + (.description | safe_text(6000)) + "\n\n<sub>\($footer)</sub>\n"' \
    -r --arg head "$1" --arg footer "$(footer)" "$result" >"$work/body.md"
  set_comment issue "$issue" code "$work/body.md"
}

if [[ $(jq -r '.changed == true' "$result") != true ]]; then
  comment "I changed nothing."
  exit 0
fi

repo=${REPO_DIR:?there is no repository to publish}
json '.title | safe_line(90) | if . == "" then "Work on issue \($n)" else . end' -r --arg n "$issue" "$result" >"$work/title"
rebuild "$base" "$work/title"
[[ $tip != "$base" ]] || die "the agent says that it changed something, but there is no change"

push_setup
remote_commit "$branch"
if [[ -n $there ]]; then
  ours "$base" || die "$branch has commits of somebody else: it is left alone (delete it, or let the agent fix the request)"
fi
if [[ -n $there && $(in_repo rev-parse "$there^{tree}") == "$(in_repo rev-parse "$tip^{tree}")" ]]; then
  note "$branch has this content already"
else
  push "$branch" "$there"
fi

json '"<!-- fullsend:code -->\n" + (.description | safe_text(12000))
  + (if (.tests // "") == "" then "" else "\n\n**Tests.** " + (.tests | safe_text(4000)) end)
  + "\n\nCloses #\($issue)\n\n<sub>\($footer)</sub>\n"' \
  -r --arg issue "$issue" --arg footer "$(footer)" "$result" >"$work/body.md"
tr -d '\n' <"$work/title" >"$work/title.line"
open_change "$branch" "$base_branch" "$work/title.line" "$work/body.md"
if [[ $FORGE == github ]]; then sign='#'; else sign='!'; fi
comment "I made $sign$change for this."
