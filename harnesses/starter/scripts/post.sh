#!/bin/sh
# Runs on your machine after a validated result, in the run directory. The sandbox is gone by now.
#
#   REPO_DIR                          the repository with the agent's changes, safe for plain git commands
#   FULLSEND_VALIDATED_ITERATION_DIR  the agent's output files
#
# Because there is a post-script, fullsend leaves your checkout alone (`--apply auto`): what happens with the
# result is decided here. A script for CI would push a branch and open a pull request, with a token that is in
# its environment and was never in the sandbox.
set -eu

: "${REPO_DIR:?there is no repository to take over}"

git -C "$REPO_DIR" add --all
if git -C "$REPO_DIR" diff --cached --quiet HEAD; then
  echo "the agent changed nothing"
  exit 0
fi
git -C "$REPO_DIR" diff --cached --binary --no-ext-diff --no-textconv HEAD >changes.patch
git -C "$REPO_DIR" --no-pager diff --cached --stat HEAD
printf 'to apply it in your checkout: git apply --index %s/changes.patch\n' "$PWD"
