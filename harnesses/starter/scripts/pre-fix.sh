#!/usr/bin/env bash
# Fetches what was said about a pull request or merge request for the agent `fix`: the review of the agent `review`,
# and comments of people who may push. What others say is not handed on.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
source "$lib/forge.sh"
source "$lib/issue.sh"
source "$lib/request.sh"
source "$lib/change.sh"

change_input no-forks
branch=$(jq -r .head_branch "$work/change.json")
if [[ ${FIX_ANY_BRANCH:-false} != true && $branch != fullsend/* ]]; then
  skip "$number_of is not on a branch of ours (FIX_ANY_BRANCH=true works on it all the same)"
fi

# Who we are when we publish: FORGE_BOT_LOGIN where the tokens to read and to write are of different accounts.
login=$(own_login)
jq --arg login "$login" '{review: ([.[] | select(.author == $login and (.body | startswith("<!-- fullsend:review -->"))) | .body] | last),
  rounds: ([.[] | select(.author == $login) | .body | capture("^<!-- fullsend:fix round=(?<n>[0-9]{1,4}) -->").n | tonumber] | max // 0)}' \
  "$work/comments.json" >"$work/ours.json"
jq '[.[] | select(.trusted and (.bot | not))]' "$input/comments.json" >"$work/trusted.json"
mv -- "$work/trusted.json" "$input/comments.json"
jq -r '.review // ""' "$work/ours.json" >"$input/review.md"
rounds=$(jq .rounds "$work/ours.json")
limit=$(bounded FIX_MAX_ROUNDS 3 100)
((rounds < limit)) || skip "$number_of was worked on $rounds times (FIX_MAX_ROUNDS)"
if [[ ! -s $input/review.md || $(tr -d '[:space:]' <"$input/review.md") == '' ]] && (($(jq length "$input/comments.json") == 0)); then
  skip "there is nothing to fix in $number_of"
fi
change_context "{\"base_commit\": \"$(in_repo rev-parse HEAD)\", \"round\": $((rounds + 1))}"
note "change $number_of, round $((rounds + 1)) of $limit"
