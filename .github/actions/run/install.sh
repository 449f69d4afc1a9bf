#!/usr/bin/env bash
# Finds the program: a vendored one, one built from the source of this action, or a release that is verified.
set -euo pipefail
source "$GITHUB_ACTION_PATH/lib.sh"

root=$(cd -- "$GITHUB_ACTION_PATH/../../.." && pwd)
binary=${INPUT_BINARY:-} version=${INPUT_VERSION:-} build=${INPUT_BUILD:-false}
attestation=${INPUT_ATTESTATION:-auto}

[[ ${INPUT_AGENT:-} ]] || refuse 'the input agent is missing: name the agent to run'
[[ $build == true || $build == false ]] || refuse "the input build is true or false, not $build"
[[ $attestation == auto || $attestation == required ]] || refuse "the input attestation is auto or required, not $attestation"
ways=0
[[ -z $binary ]] || ways=$((ways + 1))
[[ -z $version ]] || ways=$((ways + 1))
[[ $build == false ]] || ways=$((ways + 1))
((ways <= 1)) || refuse 'give only one of the inputs binary, build and version'

if [[ $binary ]]; then
  program=$(realpath -- "$binary" 2>/dev/null) || refuse "the input binary names $binary, which does not exist"
  [[ -f $program && -x $program ]] || refuse "the input binary names $binary, which is no executable file"
elif [[ $build == true ]]; then
  command -v cargo >/dev/null 2>&1 || refuse 'the input build needs Rust on the runner: install it in a step before this one'
  target=$RUNNER_TEMP/fullsend-build
  cargo build --release --locked --manifest-path "$root/Cargo.toml" --target-dir "$target"
  program=$target/release/fullsend
else
  [[ $version ]] || version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
  version=${version#v}
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+([.+-][0-9A-Za-z.+-]+)?$ ]] || refuse "the input version is no version: $version"
  [[ -f $root/.github/install.sh ]] || refuse 'this copy of the action has no installer: give the input binary, or set build: true'
  dir=$RUNNER_TEMP/fullsend-$version
  mkdir -p -- "$dir"
  options=()
  [[ $attestation == auto ]] || options=(--require-signature)
  # It verifies the checksum always, and who built the archive where gh or cosign is here.
  sh "$root/.github/install.sh" --version "$version" --dir "$dir" --repository "$ACTION_REPOSITORY" ${options[@]+"${options[@]}"} ||
    refuse "fullsend $version could not be installed from the releases of $ACTION_REPOSITORY; the lines above say why. The inputs binary and build do without a release"
  program=$dir/fullsend
fi

"$program" --version || refuse "$program does not run on this machine"
printf 'program=%s\n' "$program" >>"$GITHUB_OUTPUT"
