#!/usr/bin/env bash
# What does a run cost besides the agent? Compares `fullsend run` with an agent that does nothing against two
# plain shell forms of the same work on the same backend, for a small repository and a large one:
#
#   floor  the fewest round trips (floor.sh)
#   steps  one connection per step (steps.sh)
#
# The three take turns, after one round that is not counted. Passes when the median of fullsend is at most
# 1.25 x floor + 150 ms, and at most half of steps, for both repositories.
#
#   usage: tests/bench/run.sh [ROUNDS]      default: 7
#
#   FULLSEND     a fullsend executable; default: build this checkout in release mode
#   OPENSHELL    path of a real openshell executable; default: the embedded local backend
#   BENCH_IMAGE  image of the sandboxes on a real gateway
#   BENCH_REPOS  `small`, `large` or both, separated by a space; default: both
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
rounds=${1:-7}

if [[ -z ${FULLSEND:-} ]]; then
  (cd -- "$root" && cargo build --release --locked)
  FULLSEND=${CARGO_TARGET_DIR:-$root/target}/release/fullsend
fi
if [[ -n ${OPENSHELL:-} ]]; then
  backend=(--openshell "$OPENSHELL")
  if ! "$OPENSHELL" sandbox create --help | grep -q -- --detach; then export BENCH_OLD_CREATE=yes; fi
else
  backend=(--local)
  OPENSHELL="$FULLSEND openshell"
fi
[[ -z ${BENCH_IMAGE:-} ]] || backend+=(--image "$BENCH_IMAGE")
export OPENSHELL

work=$(mktemp -d /tmp/fsbench.XXXXXX)
trap 'rm -rf -- "$work"' EXIT

# make_repository DIRECTORY FILES BYTES: text that looks random and is the same every time.
make_repository() {
  mkdir -p -- "$1"
  awk -v dir="$1" -v files="$2" -v bytes="$3" 'BEGIN {
    x = 20260101
    for (i = 0; i < files; i++) {
      sub_dir = dir "/d" int(i / 100)
      if (i % 100 == 0) system("mkdir -p " sub_dir)
      file = sub_dir "/f" i ".txt"
      for (n = 0; n < bytes; n += length(line) + 1) {
        line = ""
        for (w = 0; w < 8; w++) { x = (x * 16807) % 2147483647; line = line sprintf("%010d ", x) }
        print line > file
      }
      close(file)
    }
  }'
  git -C "$1" init -q -b main
  git -C "$1" add -A
  GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' \
    git -C "$1" -c user.name=bench -c user.email=bench@localhost -c commit.gpgsign=false commit -q -m content
}

# once WHAT REPOSITORY: runs it once; sets `elapsed`, in milliseconds.
once() {
  local started ended command
  case $1 in
    fullsend)
      command=("$FULLSEND" run nothing "${backend[@]}" --fullsend-dir "$here/harness" --target-repo "$2"
        --output-dir "$work/results")
      ;;
    *) command=("$here/$1.sh" "$2") ;;
  esac
  started=$EPOCHREALTIME
  if ! timeout 300 "${command[@]}" </dev/null >"$work/log" 2>&1; then
    cat -- "$work/log" >&2
    printf 'error: this failed: %s\n' "${command[*]}" >&2
    exit 1
  fi
  ended=$EPOCHREALTIME
  elapsed=$(((${ended/[.,]/} - ${started/[.,]/}) / 1000))
  rm -rf -- "$work/results"
}

# summary NAME: sets `median` from $work/NAME; prints a line of the table.
summary() {
  local sorted
  mapfile -t sorted < <(sort -n -- "$work/$1")
  local count=${#sorted[@]}
  median=$(((sorted[(count - 1) / 2] + sorted[count / 2]) / 2))
  printf '  %-10s %8d %8d %8d\n' "$1" "$median" "${sorted[0]}" "${sorted[count - 1]}"
}

# verdict WHAT ACTUAL LIMIT
verdict() {
  local word=pass
  if (($2 > $3)); then word=FAIL failed=1; fi
  printf '  %s: %s: %d ms, limit %d ms\n' "$word" "$1" "$2" "$3"
}

failed=0
for size in ${BENCH_REPOS:-small large}; do
  case $size in
    small) make_repository "$work/small" 50 2000 ;;
    large) make_repository "$work/large" 5000 16000 ;;
    *) echo "BENCH_REPOS: small or large" >&2 && exit 2 ;;
  esac
  for what in fullsend floor steps; do
    BENCH_CHECK=yes once "$what" "$work/$size"
    : >"$work/$what"
  done
  for ((round = 0; round < rounds; round++)); do
    for what in fullsend floor steps; do
      once "$what" "$work/$size"
      printf '%d\n' "$elapsed" >>"$work/$what"
    done
  done

  files=$(git -C "$work/$size" ls-files | wc -l)
  size_kib=$(du -sk --exclude=.git --apparent-size -- "$work/$size" | cut -f1)
  printf '%s repository: %d files, %d KiB, %d rounds (ms)\n' "$size" "$files" "$size_kib" "$rounds"
  printf '  %-10s %8s %8s %8s\n' '' median least most
  summary fullsend && fullsend=$median
  summary floor && floor=$median
  summary steps && steps=$median
  awk -v a="$fullsend" -v b="$floor" -v c="$steps" \
    'BEGIN { printf "  fullsend / floor = %.2f, fullsend / steps = %.2f\n", a / b, a / c }'
  verdict 'at most 1.25 x floor + 150 ms' "$fullsend" $((floor * 5 / 4 + 150))
  verdict 'at most half of steps' "$fullsend" $((steps / 2))
done
exit "$failed"
