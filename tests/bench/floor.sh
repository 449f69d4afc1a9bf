#!/usr/bin/env bash
# The fewest round trips that bring a repository into a sandbox and back: create, one connection, one
# archive in, one rsync out into an empty directory, delete. No agent, no checks, no cleverness.
#
# usage: OPENSHELL=… floor.sh REPOSITORY
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

create_sandbox

# The first command opens the connection and leaves it open for the second.
socket=$work/socket
tar -C "$repo" -cf - . |
  ssh -F "$work/config" -o BatchMode=yes -o ControlMaster=yes -o ControlPersist=60 -S "$socket" "$host" \
    'mkdir -p /sandbox/workspace/repo && tar -C /sandbox/workspace/repo -xf -' 2>"$work/stderr" ||
  { cat "$work/stderr" >&2 && exit 1; }

mkdir "$work/out"
rsync -a -e "ssh -F $work/config -o BatchMode=yes -S $socket" "$host:/sandbox/workspace/repo/" "$work/out/"

ssh -F "$work/config" -S "$socket" -O exit "$host" 2>/dev/null
delete_sandbox
check_copy "$work/out"
