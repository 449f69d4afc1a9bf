# shellcheck shell=bash
# What the steps of this action share. The bash of macOS is 3.2: no references to names, and `${list[@]+…}` for a list
# that may be empty.

# refuse MESSAGE: an annotation and the exit status of a wrong input.
refuse() {
  local text=$*
  text=${text//'%'/%25}
  text=${text//$'\r'/%0D}
  text=${text//$'\n'/%0A}
  printf '::error title=fullsend action::%s\n' "$text"
  exit 2
}

# lines TEXT: its lines that are not empty, as the array `lines`. Nothing is expanded.
lines() {
  local line
  lines=()
  while IFS= read -r line || [[ $line ]]; do
    line=${line%$'\r'}
    [[ -z $line ]] || lines+=("$line")
  done <<<"$1"
}

# limited SECONDS COMMAND…: ended after that time, where the system can.
limited() {
  if command -v timeout >/dev/null 2>&1; then timeout "$@"; else "${@:2}"; fi
}
