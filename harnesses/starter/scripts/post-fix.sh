#!/usr/bin/env bash
# Publishes what the agent `fix` made: commits on top of the branch of the pull request or merge request, and one
# comment. The branch is never rewritten.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
source "$lib/forge.sh"
source "$lib/change.sh"

forge_setup
use_token write
result=$(result_file)
number_of=$(context .number)
number CHANGE_NUMBER "$number_of"
base=$(context .base_commit)
branch=$(context .head_branch)
round=$(context .round)
number 'the round' "$round"

if [[ $(jq -r '.changed == true' "$result") == true ]]; then
  repo=${REPO_DIR:?there is no repository to publish}
  in_repo check-ref-format --branch "$branch" >/dev/null || die "the branch has no valid name"
  printf 'Work on the review\n' >"$work/title"
  rebuild "$base" "$work/title"
  [[ $tip != "$base" ]] || die "the agent says that it changed something, but there is no change"
  push_setup
  remote_commit "$branch"
  [[ $there == "$base" ]] || die "$branch has moved meanwhile: run this again"
  push "$branch" "$base"
fi

json '"<!-- fullsend:fix round=\($round) -->\n" + (if .changed == true then "I worked on the review." else "I changed nothing." end)
  + "\n\n" + (.summary | safe_text(6000))
  + ([.answers[]?] | .[0:50] | map("\n\n- " + (.about | safe_text(300) | gsub("\n"; " ")) + " – " + (.answer | safe_text(2000) | gsub("\n"; "\n  "))) | add // "")
  + (if (.tests // "") == "" then "" else "\n\n**Tests.** " + (.tests | safe_text(4000)) end)
  + "\n\n<sub>\($footer)</sub>\n"' -r --arg round "$round" --arg footer "$(footer)" "$result" >"$work/body.md"
(($(wc -m <"$work/body.md") <= 60000)) || die "the answer is too long for a comment"
set_comment change "$number_of" fix "$work/body.md"
