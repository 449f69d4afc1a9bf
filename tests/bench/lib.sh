# shellcheck shell=bash
# What floor.sh and steps.sh share. One sandbox per call of the script, deleted on every ending.
#
#   OPENSHELL    the openshell command, words separated by spaces (required)
#   BENCH_IMAGE  image of the sandbox (optional)
#   BENCH_CHECK  when set, compare what came back with what went in (not part of the measured work)

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
read -r -a openshell <<<"${OPENSHELL:?names the openshell command}"
# shellcheck disable=SC2034 # used by the scripts that read this file
repo=${1:?usage: $0 REPOSITORY}
# A short path: ssh needs room for a socket name below it.
work=$(mktemp -d /tmp/fsb.XXXXXX)
name=bench-$$-$RANDOM
created=

# shellcheck disable=SC2317,SC2329 # called by trap
clean_up() {
  [[ -z $created ]] || "${openshell[@]}" sandbox delete "$name" </dev/null >/dev/null 2>&1 || true
  rm -rf -- "$work"
}
trap clean_up EXIT

# Creates the sandbox, waits until it is ready and writes $work/config; sets `host`, the alias in there.
create_sandbox() {
  local options=(--name "$name" --no-auto-providers --no-tty --policy "$here/harness/policies/nothing.yaml")
  [[ -z ${BENCH_IMAGE:-} ]] || options+=(--from "$BENCH_IMAGE")
  # Releases before 0.0.111 have no --detach and stay ready after the command has ended.
  if [[ ${BENCH_OLD_CREATE:-} ]]; then options+=(--keep -- true); else options+=(--detach -- sleep infinity); fi
  created=yes
  "${openshell[@]}" sandbox create "${options[@]}" </dev/null >/dev/null

  local json phase='' tries=0
  while [[ $phase != Ready ]]; do
    json=$("${openshell[@]}" sandbox list -o json </dev/null)
    json=${json//[[:space:]]/}
    phase=${json#*\"name\":\""$name"\"}
    phase=${phase#*\"phase\":\"}
    phase=${phase%%\"*}
    case $phase in
      Ready) ;;
      Error | Completed | Stopped | Deleting) echo "the sandbox is $phase" >&2 && exit 1 ;;
      *)
        ((++tries < 300)) || { echo "the sandbox did not become ready" >&2 && exit 1; }
        sleep 0.1
        ;;
    esac
  done

  "${openshell[@]}" sandbox ssh-config "$name" </dev/null >"$work/config"
  host=
  local key value
  while read -r key value; do
    if [[ $key == Host ]]; then host=$value && break; fi
  done <"$work/config"
  [[ $host ]] || { echo "the ssh configuration has no Host line" >&2 && exit 1; }
}

delete_sandbox() {
  "${openshell[@]}" sandbox delete "$name" </dev/null >/dev/null
  created=
}

# Compares the repository with its copy, when asked to.
check_copy() {
  [[ -z ${BENCH_CHECK:-} ]] || diff -rq -- "$repo" "$1" >&2
}
