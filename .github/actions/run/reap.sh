#!/usr/bin/env bash
# Deletes what a run that was killed left on the gateway. What cannot be deleted now has an expiry and goes with the
# next `fullsend reap`; it does not fail the job.
set -euo pipefail
source "$GITHUB_ACTION_PATH/lib.sh"

# What the run was told about its gateway, `reap` has to be told too.
arguments=(reap)
lines "${INPUT_OPTIONS:-}"
for ((at = 0; at < ${#lines[@]}; at++)); do
  case ${lines[at]} in
    --local | --gateway=* | --openshell=*) arguments+=("${lines[at]}") ;;
    --gateway | --openshell) arguments+=("${lines[at]}" "${lines[at + 1]:-}") ;;
  esac
done
limited 120 "$FULLSEND_PROGRAM" "${arguments[@]}" </dev/null ||
  printf '::warning title=fullsend action::%s\n' 'fullsend reap could not finish; run it again where the gateway can be reached'
