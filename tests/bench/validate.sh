#!/usr/bin/env bash
# How long does it take to look at harnesses? Makes a harness directory of 200 agents, each with a base, a block per
# forge, skills, a provider, host files and a policy of its own, and times the release build on it. Passes when
# `validate --forge all` on all of it takes at most 200 ms and `validate` of one agent at most 5 ms more than a
# process that only says its version.
#
#   usage: tests/bench/validate.sh [ROUNDS]      default: 9
#
#   FULLSEND  a fullsend executable; default: build this checkout in release mode
#   AGENTS    how many agents; default: 200
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
rounds=${1:-9} agents=${AGENTS:-200}

if [[ -z ${FULLSEND:-} ]]; then
  (cd -- "$root" && cargo build --release --locked)
  FULLSEND=${CARGO_TARGET_DIR:-$root/target}/release/fullsend
fi
work=$(mktemp -d /tmp/fsbench.XXXXXX)
trap 'rm -rf -- "$work"' EXIT

mkdir -p "$work"/{harness,agents,skills/shared,policies,providers,profiles,scripts,env,schemas,shared}
printf -- '---\nname: shared\ndescription: For all\n---\nText.\n' >"$work/skills/shared/SKILL.md"
printf '#!/bin/sh\n' >"$work/scripts/run.sh"
printf '{"type": "object"}\n' >"$work/schemas/result.json"
# shellcheck disable=SC2016 # the harness expands it
printf 'export A=${A} B="${A}"\n' >"$work/env/all.env"
printf 'id: t\nendpoints: [{host: api.example.com, port: 443}]\n' >"$work/profiles/t.yaml"
# shellcheck disable=SC2016 # the harness expands it
printf 'name: p\ntype: t\ncredentials: {TOKEN: "${TOKEN}"}\n' >"$work/providers/p.yaml"
cat >"$work/shared/base.yaml" <<'END'
role: coder
skills: [skills/shared]
providers: [p]
pre_script: scripts/run.sh
env: {runner: {A: "${A}", B: two}, sandbox: {C: three, D: "no"}}
validation_loop: {script: scripts/run.sh, schema: schemas/result.json, max_iterations: 2}
END
for ((n = 1; n <= agents; n++)); do
  printf -- '---\nname: a%d\ndescription: One of many\n---\nText.\n' "$n" >"$work/agents/a$n.md"
  printf 'version: 1\nfilesystem_policy: {read_only: [/usr], read_write: [/tmp]}\n' >"$work/policies/p$n.yaml"
  cat >"$work/harness/a$n.yaml" <<END
base: ../shared/base.yaml
description: Number $n
agent: agents/a$n.md
policy: policies/p$n.yaml
host_files: [{src: env/all.env, dest: /sandbox/workspace/.env.d/all.env, expand: true}]
forge:
  github: {env: {sandbox: {FORGE: github}}}
  gitlab: {env: {sandbox: {FORGE: gitlab}}}
timeout_minutes: 20
END
done

# median COMMAND...: sets `median`, in microseconds.
median() {
  local started ended sorted=()
  "$@" >"$work/log" 2>&1 || { cat -- "$work/log" >&2 && exit 1; }
  for ((round = 0; round < rounds; round++)); do
    started=$EPOCHREALTIME
    "$@" >/dev/null
    ended=$EPOCHREALTIME
    sorted+=($((${ended/[.,]/} - ${started/[.,]/})))
  done
  mapfile -t sorted < <(printf '%s\n' "${sorted[@]}" | sort -n)
  median=${sorted[$((rounds / 2))]}
}

failed=0
# verdict WHAT ACTUAL LIMIT, in microseconds.
verdict() {
  local word=pass
  if (($2 > $3)); then word=FAIL failed=1; fi
  printf '  %s: %s: %d.%d ms, limit %d ms\n' "$word" "$1" $(($2 / 1000)) $(($2 % 1000 / 100)) $(($3 / 1000))
}

printf '%d agents, %d rounds\n' "$agents" "$rounds"
median "$FULLSEND" validate --forge all --fullsend-dir "$work"
verdict "validate --forge all of $agents agents" "$median" 200000
median "$FULLSEND" --version
start=$median
median "$FULLSEND" validate a1 --forge github --fullsend-dir "$work"
verdict 'load of one harness, beyond the start of the process' $((median - start)) 5000
exit "$failed"
