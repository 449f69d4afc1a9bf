#!/usr/bin/env bash
# Becomes `fullsend run`: no shell stays between the runner and the program, so that signals reach it.
set -euo pipefail
source "$GITHUB_ACTION_PATH/lib.sh"

[[ ${INPUT_AGENT:-} ]] || refuse 'the input agent is missing: name the agent to run'
arguments=(run --output-dir "$RUNNER_TEMP/fullsend-runs" --cache-dir "$RUNNER_TEMP/fullsend-cache")
option() { [[ -z $2 ]] || arguments+=("$1" "$2"); }
option --fullsend-dir "${INPUT_FULLSEND_DIR:-}"
option --target-repo "${INPUT_TARGET_REPO:-}"
option --model "${INPUT_MODEL:-}"
option --image "${INPUT_IMAGE:-}"
option --timeout "${INPUT_TIMEOUT:-}"
lines "${INPUT_ENV_FILE:-}"
for file in ${lines[@]+"${lines[@]}"}; do arguments+=(--env-file "$file"); done
lines "${INPUT_OPTIONS:-}"
arguments+=(${lines[@]+"${lines[@]}"})
exec "$FULLSEND_PROGRAM" "${arguments[@]}" -- "$INPUT_AGENT"
