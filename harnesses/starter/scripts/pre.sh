#!/bin/sh
# Runs on your machine before a sandbox exists, in the directory that you called fullsend from.
#
#   exit 0   go on
#   exit 78  skip the run: fullsend ends with 0, the gateway is not touched
#   other    the run fails (exit 5)
#
# Lines KEY=VALUE in the file $FULLSEND_PRESCRIPT_OUTPUT say more: skipped=true is another way to skip,
# reason=… explains it.
set -eu

if [ -z "${TASK:-}" ]; then
  echo "reason=TASK is empty: nothing to do" >>"$FULLSEND_PRESCRIPT_OUTPUT"
  exit 78
fi
printf 'task: %s\n' "$TASK"
