#!/bin/sh
# Runs on your machine after each iteration, in iteration-N/. Exit 0 accepts the result; what is printed is
# the reason for a refusal. The runner has already checked output/agent-result.json against the schema.
#
# TARGET_REPO_DIR is the repository with the agent's changes, safe for plain git commands: the place to run
# your own checks. But remember that its files were written by an agent: building or testing them here runs
# them with your rights.
set -eu

if [ -n "${TARGET_REPO_DIR:-}" ] && ! git -C "$TARGET_REPO_DIR" diff --check HEAD; then
  echo "the change has whitespace errors or conflict markers"
  exit 1
fi
