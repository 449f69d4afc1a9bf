#!/usr/bin/env bash
# Fetches a pull request or merge request for the agent `review`.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
source "$lib/forge.sh"
source "$lib/issue.sh"
source "$lib/request.sh"
source "$lib/change.sh"

change_input forks
if [[ $(jq -r .draft "$work/change.json") == true && ${REVIEW_DRAFTS:-false} != true ]]; then
  skip "$number_of is a draft (REVIEW_DRAFTS=true looks at it all the same)"
fi
change_context '{}'
note "change $number_of, $(wc -c <"$input/change.diff") bytes of diff"
