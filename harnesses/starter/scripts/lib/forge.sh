# shellcheck shell=bash
# GitHub and GitLab behind one set of functions; FORGE says which. Every call is bounded in time, size and number,
# follows no redirects, and waits when the forge asks for that. A token is never on a command line.
#
# shellcheck disable=SC2154 # $work comes from common.sh

forge_setup() {
  case ${FORGE:-} in
    github)
      api_url=${GITHUB_API_URL:-https://api.github.com}
      repository=${GITHUB_REPOSITORY:?OWNER/NAME}
      [[ $repository =~ ^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$ ]] || die "GITHUB_REPOSITORY must be OWNER/NAME"
      project=/repos/$repository
      ;;
    gitlab)
      api_url=${CI_API_V4_URL:-https://gitlab.com/api/v4}
      repository=${CI_PROJECT_PATH:?GROUP/NAME}
      [[ $repository =~ ^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$ ]] || die "CI_PROJECT_PATH must be GROUP/NAME"
      project=/projects/${repository//\//%2F}
      ;;
    *) die "FORGE must be github or gitlab" ;;
  esac
  api_url=${api_url%/}
  [[ $api_url =~ ^https://|^http://(127\.0\.0\.1|localhost|\[::1\])[:/] ]] || die "the API must be https: $api_url"
}

# use_token read|write: which token the calls have. The writing one is only read here, by post-scripts.
use_token() {
  local own='' name
  case $1 in
    read) own=${FORGE_READ_TOKEN:-} ;;
    write) own=${PUSH_TOKEN:-} ;;
  esac
  if [[ $FORGE == github ]]; then
    token=${own:-${GH_TOKEN:-${GITHUB_TOKEN:-}}}
    name=GITHUB_TOKEN
  else
    token=${own:-${GITLAB_TOKEN:-}}
    name=GITLAB_TOKEN
  fi
  [[ -n $token ]] || die "there is no token to $1 with: set $name, or $([[ $1 == read ]] && echo FORGE_READ_TOKEN || echo PUSH_TOKEN)"
  [[ $token =~ ^[A-Za-z0-9._~+/=-]+$ ]] || die "the token to $1 with holds characters that no token has"
}

# What curl reads from its standard input, so that it is not on its command line.
curl_config() {
  if [[ $FORGE == github ]]; then
    printf 'header = "Authorization: Bearer %s"\n' "$token"
    printf 'header = "X-GitHub-Api-Version: 2022-11-28"\n'
  else
    printf 'header = "PRIVATE-TOKEN: %s"\n' "$token"
  fi
}

# request METHOD PATH BODY-FILE ACCEPT: prints the HTTP status; the body is in $work/answer.
request() {
  local args=(-q --silent --show-error --request "$1" --connect-timeout 10 --max-time 60 --proto '=https,http'
    --header 'User-Agent: fullsend-harness' --header "Accept: $4" --output "$work/answer"
    --dump-header "$work/head" --write-out '%{http_code}' --config -)
  [[ -z $3 ]] || args+=(--header 'Content-Type: application/json' --data-binary "@$3")
  : >"$work/answer"
  : >"$work/head"
  # A body without a length is not bounded by curl: the size of files is, at 16 MiB.
  curl_config | (ulimit -f 16384 && exec curl "${args[@]}" "$api_url$2")
}

# header NAME: the number in a header of the last answer.
header() {
  local line name value found=''
  while IFS= read -r line; do
    name=${line%%:*}
    value=${line#*:}
    value=${value//[$' \r\t']/}
    [[ ${name,,} == "$1" && $value =~ ^[0-9]{1,12}$ ]] && found=$value
  done <"$work/head"
  printf '%s' "$found"
}

# How long the forge wants us to wait, in seconds; nothing when it is no matter of limits.
rate_limit() {
  local status=$1 after reset
  after=$(header retry-after)
  if [[ $status == 429 || $status == 403 ]]; then
    if [[ -n $after ]]; then
      printf '%s' "$after"
    elif [[ $(header x-ratelimit-remaining) == 0 || $(header ratelimit-remaining) == 0 ]]; then
      reset=$(header x-ratelimit-reset)
      [[ -n $reset ]] || reset=$(header ratelimit-reset)
      after=$((${reset:-0} - $(date +%s)))
      printf '%s' $((after > 1 ? after : 1))
    elif [[ $status == 429 ]]; then
      printf 5
    fi
  fi
}

# call METHOD PATH [BODY-FILE [ACCEPT]]: sets $status. Waits and repeats where that is safe: a POST whose fate is
# unknown is not repeated, since running the script again finds what it made.
call() {
  local method=$1 path=$2 body=${3:-} accept=${4:-application/json} attempt wait failed
  for attempt in 1 2 3 4; do
    failed=0
    status=$(request "$method" "$path" "$body" "$accept") || failed=$?
    ((failed == 0)) || status=000
    wait=$(rate_limit "$status")
    if [[ -n $wait ]]; then
      ((wait <= 60)) || die "the forge's rate limit lasts $wait more seconds: run this again later"
    elif [[ $status == 5?? && $method != POST ]] || ((failed == 6 || failed == 7)); then
      wait=$((1 << (attempt - 1)))
    elif ((failed != 0)) && [[ $method == GET ]]; then
      wait=$((1 << (attempt - 1)))
    else
      return 0
    fi
    ((attempt == 4)) || sleep "$wait"
  done
}

# api METHOD PATH [BODY-FILE [ACCEPT]]: a call that has to work.
api() {
  call "$@"
  [[ $status == 2?? ]] && return
  local said
  said=$(json '(.message // .error // "") | tostring | safe_line(300)' -r "$work/answer" 2>/dev/null) || said=
  case $status in
    000) die "$1 $2: no answer from $api_url" ;;
    401 | 403) die "$1 $2: HTTP $status: $said (is the token valid, and may it do this?)" ;;
    *) die "$1 $2: HTTP $status: $said" ;;
  esac
}

# api_list PATH PAGES: all entries of so many pages of 100, in $work/list.
api_list() {
  local page separator='?'
  [[ $1 != *\?* ]] || separator='&'
  printf '[]' >"$work/list"
  for ((page = 1; page <= $2; page++)); do
    api GET "$1${separator}per_page=100&page=$page"
    jq -e 'type == "array"' "$work/answer" >/dev/null || die "GET $1: the answer is not a list"
    jq -s '.[0] + .[1]' "$work/list" "$work/answer" >"$work/list.new"
    mv -- "$work/list.new" "$work/list"
    (($(jq length "$work/answer") == 100)) || return 0
  done
}

# Who the token speaks for. A job's own token on GitHub may not ask that; it speaks for github-actions[bot].
own_login() {
  if [[ -n ${FORGE_BOT_LOGIN:-} ]]; then
    printf '%s' "$FORGE_BOT_LOGIN"
    return
  fi
  call GET /user
  if [[ $status == 2?? ]]; then
    jq -er '.login // .username' "$work/answer"
  elif [[ $FORGE == github && ($status == 403 || $status == 404) ]]; then
    printf 'github-actions[bot]'
  else
    die "GET /user: HTTP $status: is the token valid?"
  fi
}

# Bots of GitLab are known by their names only.
gitlab_bot='def bot: test("^(project|group)_[0-9]+_bot|_bot$|-bot$|\\[bot\\]$");'

# get_issue NUMBER FILE
get_issue() {
  if [[ $FORGE == github ]]; then
    api GET "$project/issues/$1"
    jq '{number, title, body: (.body // ""), state, author: .user.login, bot: (.user.type == "Bot"),
      labels: [.labels[]?.name], created: .created_at, is_change: has("pull_request")}' "$work/answer" >"$2"
  else
    api GET "$project/issues/$1"
    jq "$gitlab_bot"'{number: .iid, title, body: (.description // ""), state: (if .state == "opened" then "open" else .state end),
      author: .author.username, bot: (.author.username | bot), labels, created: .created_at, is_change: false}' \
      "$work/answer" >"$2"
  fi
}

# get_change NUMBER FILE
get_change() {
  if [[ $FORGE == github ]]; then
    api GET "$project/pulls/$1"
    jq '{number, title, body: (.body // ""), state, author: .user.login, bot: (.user.type == "Bot"),
      labels: [.labels[]?.name], created: .created_at, draft: (.draft == true), head_commit: .head.sha,
      head_branch: .head.ref, base_branch: .base.ref, fork: (.head.repo.full_name != .base.repo.full_name)}' \
      "$work/answer" >"$2"
  else
    api GET "$project/merge_requests/$1"
    jq "$gitlab_bot"'{number: .iid, title, body: (.description // ""), state: (if .state == "opened" then "open" else .state end),
      author: .author.username, bot: (.author.username | bot), labels, created: .created_at,
      draft: (.draft == true), head_commit: .sha, head_branch: .source_branch, base_branch: .target_branch,
      fork: (.source_project_id != .target_project_id)}' "$work/answer" >"$2"
  fi
}

# get_comments issue|change NUMBER FILE: with `trusted` for people who may push.
get_comments() {
  if [[ $FORGE == github ]]; then
    api_list "$project/issues/$2/comments" 20
    jq '[.[] | {id, where: null, author: .user.login, bot: (.user.type == "Bot"), body: (.body // ""), created: .created_at,
      trusted: (.author_association | IN("OWNER", "MEMBER", "COLLABORATOR"))}]' "$work/list" >"$3"
    if [[ $1 == change ]]; then
      api_list "$project/pulls/$2/comments" 10
      jq '[.[] | {id, where: "\(.path):\(.line // .original_line // "")", author: .user.login, bot: (.user.type == "Bot"),
        body: (.body // ""), created: .created_at,
        trusted: (.author_association | IN("OWNER", "MEMBER", "COLLABORATOR"))}]' "$work/list" >"$work/inline"
      api_list "$project/pulls/$2/reviews" 10
      jq '[.[] | select((.body // "") != "") | {id, where: null, author: .user.login, bot: (.user.type == "Bot"), body,
        created: .submitted_at, trusted: (.author_association | IN("OWNER", "MEMBER", "COLLABORATOR"))}]' \
        "$work/list" >"$work/reviews"
      jq -s 'add | sort_by(.created)' "$3" "$work/inline" "$work/reviews" >"$3.new"
      mv -- "$3.new" "$3"
    fi
  else
    local kind=issues
    [[ $1 == issue ]] || kind=merge_requests
    api_list "$project/members/all" 10
    # 30 is the role Developer, the first that may push.
    jq '[.[] | select(.access_level >= 30) | .username]' "$work/list" >"$work/members"
    api_list "$project/$kind/$2/notes?sort=asc&order_by=created_at" 20
    jq --slurpfile members "$work/members" "$gitlab_bot"'[.[] | select(.system | not) | {id,
      where: (if .position then "\(.position.new_path):\(.position.new_line // "")" else null end),
      author: .author.username, bot: (.author.username | bot), body: (.body // ""), created: .created_at,
      trusted: (.author.username | IN($members[0][]))}]' "$work/list" >"$3"
  fi
}

# get_diff NUMBER FILE: the change as a patch, for reading (pre-scripts).
get_diff() {
  if [[ $FORGE == github ]]; then
    call GET "$project/pulls/$1" '' application/vnd.github.diff
    [[ $status != 406 ]] || skip "$1 is larger than GitHub shows"
    [[ $status == 2?? ]] || die "GET $project/pulls/$1: HTTP $status"
    cp -- "$work/answer" "$2"
  else
    api_list "$project/merge_requests/$1/diffs" 10
    jq -r '.[] | "diff --git a/\(.old_path) b/\(.new_path)\n--- a/\(.old_path)\n+++ b/\(.new_path)\n\(
      if .too_large == true or .collapsed == true then "(GitLab does not show this one: read the file)\n" else .diff end)"' \
      "$work/list" >"$2"
  fi
}

# default_branch
default_branch() {
  api GET "$project"
  jq -er .default_branch "$work/answer"
}

# open_issues FILE: numbers and titles of the newest, to find duplicates.
open_issues() {
  if [[ $FORGE == github ]]; then
    api_list "$project/issues?state=open" 1
    jq '[.[] | select(has("pull_request") | not) | {number, title: .title[0:200]}]' "$work/list" >"$1"
  else
    api_list "$project/issues?state=opened" 1
    jq '[.[] | {number: .iid, title: .title[0:200]}]' "$work/list" >"$1"
  fi
}

# comment_path issue|change NUMBER
comment_path() {
  if [[ $FORGE == github ]]; then
    printf '%s/issues/%s/comments' "$project" "$2"
  elif [[ $1 == issue ]]; then
    printf '%s/issues/%s/notes' "$project" "$2"
  else
    printf '%s/merge_requests/%s/notes' "$project" "$2"
  fi
}

# find_comment issue|change NUMBER AGENT: the id of our comment, in $found. A mark in somebody else's comment is not ours.
find_comment() {
  local login path
  login=$(own_login)
  path=$(comment_path "$1" "$2")
  [[ $FORGE == github ]] || path+='?sort=asc&order_by=created_at'
  api_list "$path" 30
  found=$(jq -r --arg login "$login" --arg mark "<!-- fullsend:$3" '[.[]
    | select((.user.login // .author.username) == $login and (.body // "" | startswith($mark))) | .id] | first // empty' \
    "$work/list")
}

# set_comment issue|change NUMBER AGENT BODY-FILE: one comment per agent, edited when it is there already.
set_comment() {
  local path method
  find_comment "$1" "$2" "$3"
  jq -n --rawfile body "$4" '{body: $body}' >"$work/comment"
  path=$(comment_path "$1" "$2")
  if [[ -z $found ]]; then
    api POST "$path" "$work/comment"
    note "commented on $1 $2"
  else
    number 'the id of a comment' "$found"
    if [[ $FORGE == github ]]; then
      method=PATCH path=$project/issues/comments/$found
    else
      method=PUT path=$path/$found
    fi
    api "$method" "$path" "$work/comment"
    note "edited the comment on $1 $2"
  fi
}

# add_labels NUMBER LIST-FILE: adds labels of an issue (a JSON list of names).
add_labels() {
  (($(jq length "$2") > 0)) || return 0
  if [[ $FORGE == github ]]; then
    jq '{labels: .}' "$2" >"$work/labels"
    api POST "$project/issues/$1/labels" "$work/labels"
  else
    jq '{add_labels: join(",")}' "$2" >"$work/labels"
    api PUT "$project/issues/$1" "$work/labels"
  fi
  note "labels: $(jq -r 'join(", ")' "$2")"
}

# open_change BRANCH BASE TITLE-FILE BODY-FILE: one pull request or merge request per branch, updated when it is
# there already. Its number is in $change.
open_change() {
  local owner=${repository%%/*}
  if [[ $FORGE == github ]]; then
    api GET "$project/pulls?state=open&head=$(uri "$owner:$1")&per_page=10"
    change=$(jq -r --arg branch "$1" '[.[] | select(.head.ref == $branch) | .number] | first // empty' "$work/answer")
    jq -n --arg head "$1" --arg base "$2" --rawfile title "$3" --rawfile body "$4" \
      '{title: $title, body: $body, head: $head, base: $base}' >"$work/change"
    if [[ -z $change ]]; then
      api POST "$project/pulls" "$work/change"
      change=$(jq -er .number "$work/answer")
      note "opened pull request $change"
    else
      jq '{title, body}' "$work/change" >"$work/update"
      api PATCH "$project/pulls/$change" "$work/update"
      note "updated pull request $change"
    fi
  else
    api GET "$project/merge_requests?state=opened&source_branch=$(uri "$1")&per_page=10"
    change=$(jq -r --arg branch "$1" '[.[] | select(.source_branch == $branch) | .iid] | first // empty' "$work/answer")
    jq -n --arg head "$1" --arg base "$2" --rawfile title "$3" --rawfile body "$4" '{title: $title,
      description: $body, source_branch: $head, target_branch: $base, remove_source_branch: true}' >"$work/change"
    if [[ -z $change ]]; then
      api POST "$project/merge_requests" "$work/change"
      change=$(jq -er .iid "$work/answer")
      note "opened merge request $change"
    else
      jq '{title, description}' "$work/change" >"$work/update"
      api PUT "$project/merge_requests/$change" "$work/update"
      note "updated merge request $change"
    fi
  fi
}

# uri TEXT: percent-encoded.
uri() { jq -nr --arg text "$1" '$text | @uri'; }
