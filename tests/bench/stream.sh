#!/usr/bin/env bash
# How fast is an agent's stream decoded, and in how much memory? For each decoder a recorded stream (tests/fixtures) is
# repeated up to 1 GB, and `fullsend replay --stats` decodes and counts it. One line of 1 GB comes last: it is longer
# than any that is read.
#
# Passes when each is read with at least 300 MB/s of processor time and 40 MB of memory at the most. The first round of
# each is not counted; it brings the file into the page cache.
#
#   usage: tests/bench/stream.sh [ROUNDS]      default: 3
#
#   FULLSEND     a fullsend executable; default: build this checkout in release mode
#   BENCH_BYTES  the length of each stream; default: 1000000000
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
rounds=${1:-3}
bytes=${BENCH_BYTES:-1000000000}

if [[ -z ${FULLSEND:-} ]]; then
  (cd -- "$root" && cargo build --release --locked)
  FULLSEND=${CARGO_TARGET_DIR:-$root/target}/release/fullsend
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/fsbench.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

# repeated FIXTURE: writes it again and again, up to whole lines within the length.
repeated() {
  local block=$work/block
  : >"$block"
  while (($(stat -c %s -- "$block") < 4000000)); do cat -- "$1" >>"$block"; done
  while cat -- "$block"; do :; done 2>/dev/null | head -c "$bytes" >"$work/stream.jsonl" || true
}

# field NAME: of the answer in $work/answer.
field() { sed -n "s/^ *\"$1\": \([0-9.]*\),\{0,1\}$/\1/p" -- "$work/answer"; }

# measure WHAT: decodes $work/stream.jsonl; prints the best round and the most memory.
measure() {
  local best=0 wall=0 memory=0 round
  for ((round = 0; round <= rounds; round++)); do
    local TIMEFORMAT='%U %S' user system speed
    { time "$FULLSEND" replay --stats "$work/stream.jsonl" >"$work/answer"; } 2>"$work/time"
    ((round > 0)) || continue
    read -r user system <"$work/time"
    speed=$(awk -v n="$(field bytes)" -v u="$user" -v s="$system" 'BEGIN { printf "%d", n / (u + s) / 1e6 }')
    ((speed <= best)) || best=$speed
    awk -v a="$(field mb_per_s)" -v b="$wall" 'BEGIN { exit !(a > b) }' && wall=$(field mb_per_s)
    (($(field peak_rss_kib) <= memory)) || memory=$(field peak_rss_kib)
  done
  local word=pass
  if ((best < 300 || memory > 40 * 1000)); then word=FAIL failed=1; fi
  printf '  %-36s %6d MB/s %8.0f MB/s %8d KiB   %s\n' "$1" "$best" "$wall" "$memory" "$word"
}

failed=0
printf '  %-36s %11s %13s %12s\n' 'stream' 'processor' 'wall' 'memory'
for stream in claude-2.1.332-edit claude-2.1.332-partial codex-0.171.0-edit opencode-1.18.33-retry; do
  repeated "$root/tests/fixtures/streams/$stream.jsonl"
  measure "$stream"
done
{ printf '{"type":"user","x":"' && head -c "$bytes" /dev/zero | tr '\0' a && printf '"}\n'; } >"$work/stream.jsonl"
measure 'one line'
exit "$failed"
