#!/usr/bin/env bash
# Registers OpenShell gateways and selects the first. A line of the input is `[NAME] ADDRESS [OPTION…]`. One that is
# registered under its name with the same address already is taken as it is.
set -euo pipefail
source "$GITHUB_ACTION_PATH/lib.sh"

command -v openshell >/dev/null 2>&1 || refuse 'the input gateway needs the openshell CLI: install it in a step before this one, or run the job in the runner image'

lines "${INPUT_GATEWAY_OPTIONS:-}"
common=(${lines[@]+"${lines[@]}"})
lines "$INPUT_GATEWAY"

# The address that NAME is registered with; nothing when it is not. The rows of the list begin with a mark and a blank.
registered() {
  openshell gateway list </dev/null 2>/dev/null | sed $'s/\e\\[[0-9;]*m//g' |
    awk -v name="$1" '/^[* ] / { at = $1 == "*" ? 2 : 1; if ($at == name && !seen++) print $(at + 1) }' || true
}

names=()
for line in ${lines[@]+"${lines[@]}"}; do
  read -r -a words <<<"$line"
  ((${#words[@]} > 0)) || continue
  name=fullsend-action
  ((${#names[@]} == 0)) || name=fullsend-action-$((${#names[@]} + 1))
  if [[ ${words[0]} != *://* ]]; then
    name=${words[0]}
    words=(${words[@]+"${words[@]:1}"})
  fi
  [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || refuse "a line of the input gateway begins with a name or an https address, not with $name"
  for other in ${names[@]+"${names[@]}"}; do
    [[ $name != "$other" ]] || refuse "the input gateway names $name twice"
  done
  address=${words[0]:-}
  case $address in
    https://?*) ;;
    # Nothing leaves the machine.
    http://127.0.0.1:* | http://localhost:* | 'http://[::1]:'*) ;;
    *) refuse "the address of a gateway is https, or http on this machine, not '$address' (input gateway)" ;;
  esac
  known=$(registered "$name")
  if [[ -z $known ]]; then
    if ! said=$(limited 120 openshell gateway add "$address" --name "$name" ${common[@]+"${common[@]}"} "${words[@]:1}" 2>&1 </dev/null); then
      refuse "the gateway $name could not be registered: $said"
    fi
  elif [[ ${known%/} != "${address%/}" ]]; then
    refuse "the gateway $name is registered with the address $known already, not $address: give it another name, or remove that one (openshell gateway remove $name)"
  fi
  limited 60 openshell --gateway "$name" sandbox list -o json >/dev/null </dev/null ||
    refuse "no gateway answers at $address; is it up, may this runner reach it, and is it logged in?"
  names+=("$name")
done
((${#names[@]} > 0)) || refuse 'the input gateway holds no address'

# The variable would win over what is selected here.
case ${OPENSHELL_GATEWAY:-} in
  '' | "${names[0]}") ;;
  *) refuse "OPENSHELL_GATEWAY is $OPENSHELL_GATEWAY and wins over the input gateway: leave one of them out" ;;
esac
openshell gateway select "${names[0]}" </dev/null
