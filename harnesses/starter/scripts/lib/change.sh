# shellcheck shell=bash
# What an agent changed: what of it may be published, and how. Git runs without hooks: a repository may keep its
# hooks among the files that an agent writes.
#
# shellcheck disable=SC2154 # $work, $repository and $token come from common.sh and forge.sh

bot_name=${GIT_BOT_NAME:-fullsend}
bot_email=${GIT_BOT_EMAIL:-fullsend@users.noreply.invalid}

# in_repo ARGUMENT…: git in $repo.
in_repo() { git -C "$repo" -c core.hooksPath=/dev/null -c core.fsmonitor=false -c commit.gpgSign=false "$@"; }

# tree_of_worktree: the tree that a commit of everything would have. The index of the repository stays as it is.
tree_of_worktree() {
  (
    export GIT_INDEX_FILE=$work/index
    in_repo read-tree HEAD
    in_repo add --all
    in_repo write-tree
  )
}

# protected PATH: whether an agent may not change this file. What runs with a job's secrets, who has to approve, and
# what the next agent is told are not for agents.
protected() {
  local path=${1,,} prefix
  local IFS=$' \n\t,'
  for prefix in ${ALLOWED_PATHS:-}; do
    [[ $1 == "$prefix" || $prefix == */ && $1 == "$prefix"* ]] && return 1
  done
  for prefix in ${PROTECTED_PATHS:-}; do
    prefix=${prefix,,}
    [[ $path == "$prefix" || $prefix == */ && $path == "$prefix"* ]] && return 0
  done
  case $path in
    .github/* | .gitlab/* | .gitlab-ci.yml | .gitlab-ci.yaml | .circleci/* | .buildkite/* | .woodpecker* | .drone.yml) return 0 ;;
    jenkinsfile | azure-pipelines.yml | bitbucket-pipelines.yml | .travis.yml | .pre-commit-config.yaml | .husky/*) return 0 ;;
    codeowners | docs/codeowners | .gitmodules | .gitattributes | */.gitattributes | .fullsend/*) return 0 ;;
    .claude/* | */.claude/* | .codex/* | .cursor/* | .gemini/* | .opencode/* | .mcp.json | opencode.json) return 0 ;;
    agents.md | */agents.md | claude.md | */claude.md | gemini.md) return 0 ;;
  esac
  return 1
}

# check_change FROM TO: ends with the reason when something between two commits or trees may not be published.
check_change() {
  local meta path mode count=0 bytes max_files max_bytes
  max_files=$(bounded CHANGE_MAX_FILES 100 5000)
  max_bytes=$(bounded CHANGE_MAX_BYTES 1000000 100000000)
  in_repo diff-tree -r --raw -z --no-renames "$1" "$2" >"$work/raw"
  while IFS= read -r -d '' meta && IFS= read -r -d '' path; do
    count=$((count + 1))
    ((count <= max_files)) || refuse "more than $max_files files are changed (CHANGE_MAX_FILES)"
    mode=${meta#* }
    mode=${mode%% *}
    [[ $mode != 160000 ]] || refuse "a submodule is added or changed: $(printf '%q' "$path")"
    if protected "$path"; then
      refuse "this file is protected: $(printf '%q' "$path") (ALLOWED_PATHS lifts that)"
    fi
  done <"$work/raw"
  bytes=$(in_repo diff-tree -r -p --binary --no-ext-diff --no-textconv --no-renames "$1" "$2" | wc -c)
  ((bytes <= max_bytes)) || refuse "the change has $bytes bytes, more than $max_bytes (CHANGE_MAX_BYTES)"
}

# The validation tells the agent; the post-script ends.
refuse() { die "nothing is published: $*"; }

# commit TREE PARENT MESSAGE-FILE [DATE]: a commit of ours; prints its id.
commit() {
  local date=${4:-$(date +%s) +0000}
  GIT_AUTHOR_NAME=$bot_name GIT_AUTHOR_EMAIL=$bot_email GIT_AUTHOR_DATE=$date \
    GIT_COMMITTER_NAME=$bot_name GIT_COMMITTER_EMAIL=$bot_email GIT_COMMITTER_DATE=$date \
    in_repo commit-tree "$1" -p "$2" -F "$3"
}

# rebuild BASE TITLE-FILE: the agent's commits after BASE, made again under our name and with harmless messages, and
# what it left uncommitted; sets $tip. A history that is not a short line is made one commit.
rebuild() {
  local base=$1 title=$2 head parent tree final one
  local -a commits=()
  head=$(in_repo rev-parse HEAD)
  final=$(tree_of_worktree)
  parent=$base
  if in_repo merge-base --is-ancestor "$base" "$head" && [[ -z $(in_repo rev-list --merges "$base..$head") ]]; then
    mapfile -t commits < <(in_repo rev-list --reverse "$base..$head")
    ((${#commits[@]} <= 30)) || commits=()
  fi
  for one in "${commits[@]}"; do
    tree=$(in_repo rev-parse "$one^{tree}")
    [[ $tree != "$(in_repo rev-parse "$parent^{tree}")" ]] || continue
    check_change "$parent" "$tree"
    in_repo show -s --no-show-signature --format=%B "$one" | head -c 8192 | json 'safe_message(4000)' -Rrs >"$work/message"
    [[ -s $work/message && -n $(tr -d '[:space:]' <"$work/message") ]] || cp -- "$title" "$work/message"
    parent=$(commit "$tree" "$parent" "$work/message" "$(in_repo show -s --no-show-signature --format=%ct "$one") +0000")
  done
  if [[ $final != "$(in_repo rev-parse "$parent^{tree}")" ]]; then
    parent=$(commit "$final" "$parent" "$title")
  fi
  check_change "$base" "$parent"
  tip=$parent
}

# push_setup: where to, and how git is let in. The token is in the environment of git alone.
push_setup() {
  local server user basic
  if [[ $FORGE == github ]]; then
    server=${GITHUB_SERVER_URL:-https://github.com} user=x-access-token
  else
    server=${CI_SERVER_URL:-https://gitlab.com} user=oauth2
  fi
  push_url=${PUSH_URL:-${server%/}/$repository.git}
  basic=$(printf '%s:%s' "$user" "$token" | base64 | tr -d '\n')
  # The first, empty value sets aside what the checkout of a CI job has written into the configuration.
  push_env=(GIT_CONFIG_COUNT=2
    "GIT_CONFIG_KEY_0=http.${server%/}/.extraHeader" GIT_CONFIG_VALUE_0=
    "GIT_CONFIG_KEY_1=http.${server%/}/.extraHeader" "GIT_CONFIG_VALUE_1=Authorization: Basic $basic"
    GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true)
}

# remote_git ARGUMENT…: git that talks to the forge.
remote_git() {
  (
    export "${push_env[@]}"
    in_repo -c credential.helper= -c http.followRedirects=false -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=30 "$@"
  )
}

# remote_commit BRANCH: what the branch is at now, in $there; nothing when it is not there.
remote_commit() {
  there=$(remote_git ls-remote "$push_url" "refs/heads/$1") || die "cannot ask $push_url for its branches"
  there=${there%%[$' \t\n']*}
}

# push BRANCH OLD: $tip, if the branch is still at OLD (empty: not there).
push() {
  remote_git push --quiet --no-verify --no-follow-tags --recurse-submodules=no \
    "--force-with-lease=refs/heads/$1:$2" "$push_url" "$tip:refs/heads/$1" || die "the push to $1 was refused"
  note "pushed $1 (${tip:0:12})"
}

# ours BASE: whether all commits of $there are of this program, so that the branch may be replaced.
ours() {
  remote_git fetch --quiet --no-tags --no-write-fetch-head "$push_url" "$there" || return 1
  in_repo log --format=%ce "$there" --not "$1" >"$work/committers" || return 1
  ! grep -qFvx -- "$bot_email" "$work/committers"
}
