# What an agent wrote, made harmless for a forge. Everything that is published goes through here.

# Without controls, and without what has no width or turns text round. Joiners stay: scripts and emoji need them.
def printable:
  explode
  | map(select(
      (. == 9 or . == 10 or . >= 32)
      and (. < 127 or . > 159)
      and . != 1564 and . != 8203 and . != 8206 and . != 8207
      and (. < 8234 or . > 8238)
      and (. < 8288 or . > 8303)
      and . != 65279
      and (. < 917504 or . > 917631)))
  | implode;

# Nobody is called: `@` before a name gets a zero-width space after it. Addresses of mail stay.
def uncalled: gsub("(?<![A-Za-z0-9_])@(?=[A-Za-z0-9_])"; "@\u200b");

# No other issue is closed, and no pipeline is skipped.
def uncommanding:
  gsub("(?<word>\\b(?i:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)\\b):?[ \\t\\r\\n]+(?=[A-Za-z0-9_./-]*[#!][0-9]|https?://)"; "\(.word) → ")
  | gsub("\\[(?<what>(?i:skip ci|ci skip|no ci|skip actions|actions skip))\\]"; "(\(.what))")
  | gsub("(?i:skip-checks:)"; "skip-checks =")
  | gsub("(?i:\\bci\\.skip\\b)"; "ci-skip");

# No command for a bot or for GitLab: a line that begins with `/` and a letter gets a backslash before it.
def unslashed: split("\n") | map(sub("^(?<space>[ \\t>*-]*)/(?=[A-Za-z])"; "\(.space)\\/")) | join("\n");

# No hidden text, and nothing that is fetched when somebody looks at it.
def unhidden:
  gsub("<!--"; "&lt;!--")
  | gsub("<(?=(?i:img|picture|source|video|audio|iframe|object|embed)\\b)"; "&lt;")
  | gsub("!\\["; "[");

def cut($limit): if length > $limit then .[0:$limit] + "\n\n(cut here)" else . end;

# Markdown of at most so many characters.
def safe_text($limit): tostring | printable | cut($limit) | unhidden | uncalled | uncommanding | unslashed;

# One line, for a title.
def safe_line($limit):
  tostring | printable | gsub("\\s+"; " ") | ltrimstr(" ") | rtrimstr(" ") | .[0:$limit]
  | unhidden | uncalled | uncommanding | ltrimstr("/");

# A text as code of Markdown, whatever is in it.
def code: tostring | printable | gsub("[`\\n]"; " ") | "`" + .[0:200] + "`";

# A commit message.
def safe_message($limit): safe_text($limit) | split("\n") | map(select(test("^(?i:co-authored-by|signed-off-by|reviewed-by|acked-by|approved-by)\\s*:") | not)) | join("\n");
