#!/usr/bin/env bash
# Registers an OpenShell gateway under the name `fullsend-action` and selects it. A gateway that is registered under
# that name already is taken as it is.
set -euo pipefail
source "$GITHUB_ACTION_PATH/lib.sh"

command -v openshell >/dev/null 2>&1 || refuse 'the input gateway needs the openshell CLI: install it in a step before this one, or run the job in the runner image'
case $INPUT_GATEWAY in
  https://*) ;;
  *) refuse "the input gateway is an https address, not $INPUT_GATEWAY" ;;
esac
options=()
words options "${INPUT_GATEWAY_OPTIONS:-}"
if ! said=$(openshell gateway add "$INPUT_GATEWAY" --name fullsend-action "${options[@]}" 2>&1 </dev/null); then
  case $said in
    *'already exists'*) ;;
    *) refuse "the gateway could not be registered: $said" ;;
  esac
fi
openshell gateway select fullsend-action </dev/null
timeout 60 openshell sandbox list -o json >/dev/null </dev/null ||
  refuse "no gateway answers at $INPUT_GATEWAY; is it up, and may this runner reach it?"
