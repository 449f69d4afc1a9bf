# shellcheck shell=bash
# What the steps of this action share.

# refuse MESSAGE: an annotation and the exit status of a wrong input.
refuse() {
  local text=$*
  text=${text//'%'/%25}
  text=${text//$'\r'/%0D}
  text=${text//$'\n'/%0A}
  printf '::error title=fullsend action::%s\n' "$text"
  exit 2
}

# words NAME TEXT: the lines of TEXT that are not empty, as the array NAME. Nothing is expanded.
words() {
  local -n into=$1
  local line
  into=()
  while IFS= read -r line || [[ $line ]]; do
    line=${line%$'\r'}
    [[ -z $line ]] || into+=("$line")
  done <<<"$2"
}
