#!/usr/bin/env bash
# Publishes what the agent `review` found: one comment on the pull request or merge request. It never approves.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
source "$lib/forge.sh"

forge_setup
use_token write
result=$(result_file)
number_of=$(context .number)
number CHANGE_NUMBER "$number_of"

# The verdict is one of three words; anything else is the mildest of them.
json '{approve: "Nothing stands against this.", changes: "This should be changed before it is merged.",
    comment: "Some remarks."} as $said
  | "<!-- fullsend:review -->\n**" + ($said[.verdict | tostring] // $said.comment) + "** (of \($commit))\n\n"
  + (.summary | safe_text(6000))
  + ([.findings[]?] | .[0:50] | map("\n\n- **\({high: "high", medium: "medium", low: "low"}[.severity | tostring] // "low")** "
      + ((.path | code) + (if (.line | type) == "number" then ":\(.line | floor)" else "" end))
      + " – " + (.message | safe_text(2000) | gsub("\n"; "\n  "))) | add // "")
  + "\n\n<sub>\($footer)</sub>\n"' -r --arg commit "$(context '.head_commit[0:12]')" --arg footer "$(footer)" \
  "$result" >"$work/body.md"
(($(wc -m <"$work/body.md") <= 60000)) || die "the review is too long for a comment"
set_comment change "$number_of" review "$work/body.md"
