# shellcheck shell=bash
# What the scripts of triage, code, review and fix share. Reads no input, keeps its files in $work.
#
# They need bash, curl, git and jq. Text of strangers and of agents is only ever data: it travels in files and
# through jq, never through the shell's own words.

set -euo pipefail
umask 077
export LC_ALL=C.UTF-8

lib=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/forge.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

note() { printf '%s\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# skip REASON: ends the run without an error (pre-scripts).
skip() {
  note "$*"
  printf 'reason=%s\n' "$*" >>"${FULLSEND_PRESCRIPT_OUTPUT:?is set by fullsend}"
  exit 78
}

# number WHAT VALUE: refuses what is no number of an issue or a change.
number() {
  [[ $2 =~ ^[1-9][0-9]{0,9}$ ]] || die "$1 must be a number, not: ${2:0:40}"
}

# bounded NAME DEFAULT MAX: the number in the variable NAME.
bounded() {
  local value=${!1:-$2}
  if [[ ! $value =~ ^[1-9][0-9]{0,8}$ ]] || ((value > $3)); then
    die "$1 must be a number from 1 to $3"
  fi
  printf '%s' "$value"
}

# json FILTER [ARGUMENT…]: jq with the functions of text.jq.
json() {
  local filter=$1
  shift
  jq -L "$lib" "include \"text\"; $filter" "$@"
}

# event FILTER: a number from the event that started the job; nothing when there is none.
event() {
  local file
  for file in "${GITHUB_EVENT_PATH:-}" "${TRIGGER_PAYLOAD:-}"; do
    [[ -n $file && -f $file ]] || continue
    jq -r "($1) // empty | select(type == \"number\")" "$file" 2>/dev/null && return
  done
  return 0
}

# The issue that this run is about.
issue_number() {
  local found=${ISSUE_NUMBER:-}
  [[ -n $found ]] || found=$(event '.issue | select(.pull_request | not) | .number // .iid')
  [[ -n $found ]] || found=$(event 'select(.object_kind == "issue") | .object_attributes.iid')
  [[ -n $found ]] || die "which issue? set ISSUE_NUMBER, or start the job from an event of an issue"
  number ISSUE_NUMBER "$found"
  printf '%s' "$found"
}

# The pull request or merge request that this run is about.
change_number() {
  local found=${CHANGE_NUMBER:-${CI_MERGE_REQUEST_IID:-}}
  [[ -n $found ]] || found=$(event '.pull_request.number // (.issue | select(.pull_request) | .number) // .merge_request.iid')
  [[ -n $found ]] || found=$(event 'select(.object_kind == "merge_request") | .object_attributes.iid')
  [[ -n $found ]] || die "which pull request or merge request? set CHANGE_NUMBER, or start the job from its event"
  number CHANGE_NUMBER "$found"
  printf '%s' "$found"
}

# has_label FILE NAME
has_label() { jq -e --arg name "$2" '.labels | index($name) != null' "$1" >/dev/null; }

# The agent's result, which the runner has checked against the schema.
result_file() {
  local file=${FULLSEND_VALIDATED_ITERATION_DIR:?is set by fullsend}/agent-result.json
  [[ -f $file && ! -h $file ]] || die "there is no agent-result.json"
  (($(wc -c <"$file") <= 1048576)) || die "agent-result.json is larger than 1 MiB"
  jq -e 'type == "object"' "$file" >/dev/null || die "agent-result.json is not an object"
  printf '%s' "$file"
}

# context FILTER: what the pre-script wrote down. The agent had a copy of it; this is the host's.
context() { jq -er "$1" "${FULLSEND_RUN_DIR:-$PWD}/agent-input/context.json"; }

# footer: where a text comes from.
footer() {
  local url=
  if [[ ${FORGE:-} == github && -n ${GITHUB_RUN_ID:-} ]]; then
    url=${GITHUB_SERVER_URL:-https://github.com}/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID
  elif [[ ${FORGE:-} == gitlab && -n ${CI_JOB_URL:-} ]]; then
    url=$CI_JOB_URL
  fi
  if [[ $url =~ ^https?://[A-Za-z0-9._~:/-]+$ ]]; then
    printf 'An agent wrote this ([its run](%s)). It may be wrong.' "$url"
  else
    printf 'An agent wrote this. It may be wrong.'
  fi
}
