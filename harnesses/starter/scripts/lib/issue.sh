# shellcheck shell=bash
# The issue of a run, for pre-scripts: whether an agent should look at it, and what it gets to see.
#
# shellcheck disable=SC2034,SC2154 # shared between the files

# issue_input: sets $issue and $input, and writes issue.json and comments.json for the agent.
issue_input() {
  forge_setup
  use_token read
  input=${FULLSEND_AGENT_INPUT_DIR:?is set by fullsend}
  issue=$(issue_number)
  get_issue "$issue" "$work/issue.json"
  [[ $(jq -r .is_change "$work/issue.json") == false ]] || skip "$issue is a pull request"
  [[ $(jq -r .state "$work/issue.json") == open ]] || skip "issue $issue is closed"
  if [[ ${ALLOW_BOTS:-false} != true && $(jq -r .bot "$work/issue.json") == true ]]; then
    skip "issue $issue is by a bot (ALLOW_BOTS=true looks at it all the same)"
  fi
  if has_label "$work/issue.json" "${SKIP_LABEL:-no-agent}"; then
    skip "issue $issue has the label ${SKIP_LABEL:-no-agent}"
  fi
  get_comments issue "$issue" "$work/comments.json"
  text_input "$work/issue.json" "$input/issue.json"
  comments_input "$work/comments.json" "$input/comments.json"
}

# text_input FROM TO: an issue or a change, bounded.
text_input() {
  jq 'def cut($n): if length > $n then .[0:$n] + "\n(cut here)" else . end;
    .title |= .[0:500] | .body |= cut(60000) | .labels |= .[0:50]' "$1" >"$2"
}

# comments_input FROM TO: the newest 50 comments without our own, bounded each and together.
comments_input() {
  jq 'def cut($n): if length > $n then .[0:$n] + "\n(cut here)" else . end;
    [.[] | select(.body | startswith("<!-- fullsend:") | not)] | .[-50:] | map(.body |= cut(10000))
    | reduce reverse[] as $one ([]; if (map(.body | length) | add // 0) < 200000 then [$one] + . else . end)' "$1" >"$2"
}

# allowed_labels: what the agent may choose from, as JSON. Labels that start other agents do not belong in here.
allowed_labels() {
  jq -n --arg list "${TRIAGE_LABELS:-bug,documentation,enhancement,question,duplicate,needs-info}" \
    '[$list | split(",")[] | ltrimstr(" ") | rtrimstr(" ") | select(. != "")]'
}
