#!/bin/sh
# Runs on the host after each iteration, in iteration-N/. Exit 0 accepts the output; what is printed is the
# reason for a refusal. The runner has checked output/agent-result.json against $FULLSEND_OUTPUT_SCHEMA
# before; here is what a schema cannot say: every file is counted under exactly one language.
set -eu

result=output/agent-result.json

if [ ! -f "$result" ] || [ -h "$result" ]; then
  echo "the agent wrote no $result"
  exit 1
fi

total=
sum=0
while IFS= read -r line; do
  case $line in
    '  "files": '*)
      total=${line#*: }
      total=${total%,}
      ;;
    *'{ "language": '*)
      count=${line##*'"files": '}
      count=${count%%,*}
      case $count in
        '' | *[!0-9]*)
          echo "a language has no number of files: $line"
          exit 1
          ;;
      esac
      sum=$((sum + count))
      ;;
  esac
done <"$result"

if [ -z "$total" ]; then
  echo "$result does not say how many files there are"
  exit 1
fi
if [ "$total" != "$sum" ]; then
  echo "$result says $total files, but its languages add up to $sum"
  exit 1
fi
echo "ok: $total files, all accounted for"
