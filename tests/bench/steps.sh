#!/usr/bin/env bash
# The same work as such a sequence is usually written: every step is a command of its own with a connection
# of its own.
#
# usage: OPENSHELL=… steps.sh REPOSITORY
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

remote() { ssh -F "$work/config" -o BatchMode=yes "$host" "$@" </dev/null; }
copy() { scp -q -r -F "$work/config" -o BatchMode=yes "$1" "$host:$2" </dev/null; }

create_sandbox

remote 'mkdir -p /sandbox/workspace/bin /sandbox/workspace/.env.d /sandbox/workspace/output'
remote 'mkdir -p /sandbox/claude-config/agents /sandbox/claude-config/skills'
printf 'export FULLSEND_OUTPUT_DIR=/sandbox/workspace/output\n' >"$work/env"
copy "$work/env" /sandbox/workspace/.env
copy "$here/harness/agents/nothing" /sandbox/workspace/bin/nothing
remote 'chmod +x /sandbox/workspace/bin/nothing'
copy "$repo" /sandbox/workspace/repo
remote 'test -d /sandbox/workspace/repo/.git'
remote 'cd /sandbox/workspace/repo && . /sandbox/workspace/.env && /sandbox/workspace/bin/nothing'
remote 'find /sandbox/workspace/output -type f'
copy_out() { rsync -a -e "ssh -F $work/config -o BatchMode=yes" "$host:$1" "$2" </dev/null; }
mkdir "$work/output" "$work/out"
copy_out /sandbox/workspace/output/ "$work/output/"
copy_out /sandbox/workspace/repo/ "$work/out/"

delete_sandbox
check_copy "$work/out"
