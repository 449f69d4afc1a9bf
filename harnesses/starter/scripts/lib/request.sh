# shellcheck shell=bash
# The pull request or merge request of a run, for pre-scripts.
#
# shellcheck disable=SC2034,SC2154 # shared between the files

# change_input: sets $number_of, $input and $repo, and writes change.json, comments.json and change.diff.
change_input() {
  local head head_branch limit
  forge_setup
  use_token read
  input=${FULLSEND_AGENT_INPUT_DIR:?is set by fullsend}
  number_of=$(change_number)
  get_change "$number_of" "$work/change.json"
  [[ $(jq -r .state "$work/change.json") == open ]] || skip "$number_of is closed"
  if has_label "$work/change.json" "${SKIP_LABEL:-no-agent}"; then
    skip "$number_of has the label ${SKIP_LABEL:-no-agent}"
  fi
  head_branch=$(jq -r .head_branch "$work/change.json")
  # Our own are looked at as well: `review` is for them before all.
  if [[ ${ALLOW_BOTS:-false} != true && $(jq -r .bot "$work/change.json") == true && $head_branch != fullsend/* ]]; then
    skip "$number_of is by a bot (ALLOW_BOTS=true looks at it all the same)"
  fi
  if [[ $1 == no-forks || ${ALLOW_FORKS:-false} != true ]] && [[ $(jq -r .fork "$work/change.json") == true ]]; then
    skip "$number_of comes from a fork"
  fi
  repo=${FULLSEND_TARGET_REPO_DIR:?is set by fullsend}
  head=$(jq -r .head_commit "$work/change.json")
  [[ $head =~ ^[0-9a-f]{40,64}$ ]] || die "the forge names no commit of $number_of"
  # A job may stand on the merge of the change with its target.
  if [[ $(in_repo rev-parse HEAD) != "$head" && ($1 == no-forks || $(in_repo rev-parse --verify --quiet 'HEAD^2') != "$head") ]]; then
    die "the checkout is not at the head of $number_of (${head:0:12}): check that commit out first"
  fi
  get_comments change "$number_of" "$work/comments.json"
  text_input "$work/change.json" "$input/change.json"
  comments_input "$work/comments.json" "$input/comments.json"
  get_diff "$number_of" "$work/change.diff"
  limit=$(bounded DIFF_MAX_BYTES 500000 8000000)
  (($(wc -c <"$work/change.diff") <= limit)) || skip "$number_of is larger than $limit bytes (DIFF_MAX_BYTES)"
  cp -- "$work/change.diff" "$input/change.diff"
}

# change_context MORE: writes context.json.
change_context() {
  jq --argjson more "$1" '{kind: "change", number, head_commit, head_branch, base_branch} + $more' \
    "$work/change.json" >"$input/context.json"
}
