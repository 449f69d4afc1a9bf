#!/usr/bin/env bash
# Runs after each iteration of `code` and `fix`, in iteration-N/: the change is one that can be published, and the result
# tells the truth about it. What is printed is told to the agent. Nothing of the repository is run.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
source "$lib/change.sh"

refuse() {
  note "this cannot be published: $*"
  exit 1
}

says=$(jq -r '.changed' output/agent-result.json)
if [[ -z ${TARGET_REPO_DIR:-} ]]; then
  [[ $says == false ]] || refuse "there is no change of the repository"
  exit 0
fi
repo=$TARGET_REPO_DIR
base=$(context .base_commit)
tree=$(tree_of_worktree)
if [[ $tree == "$(in_repo rev-parse "$base^{tree}")" ]]; then
  [[ $says == false ]] || refuse "agent-result.json says changed: true, but the repository is as it was"
  exit 0
fi
[[ $says == true ]] || refuse "agent-result.json says changed: false, but the repository is changed"
check_change "$base" "$tree"
