#!/usr/bin/env bash
# Deletes what a run that was killed left on the gateway. What cannot be deleted now has an expiry and goes with the
# next `fullsend reap`; it does not fail the job.
set -euo pipefail
source "$GITHUB_ACTION_PATH/lib.sh"

options=()
words options "${INPUT_OPTIONS:-}"
local_backend=()
for option in "${options[@]}"; do [[ $option != --local ]] || local_backend=(--local); done
timeout 120 "$FULLSEND_PROGRAM" reap "${local_backend[@]}" </dev/null ||
  printf '::warning title=fullsend action::%s\n' 'fullsend reap could not finish; run it again where the gateway can be reached'
