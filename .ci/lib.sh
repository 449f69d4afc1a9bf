# shellcheck shell=bash
# What the scripts beside this file share: say what is going on, and install what is missing.
#
# usage: source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # used by the scripts that read this file
target=${CARGO_TARGET_DIR:-$root/target}
missing=()

say() { printf '==> %s\n' "$*" >&2; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# need PACKAGE THING: PACKAGE is to be installed when THING (a command, or a file if it has a slash) is missing.
need() {
  case $2 in
    */*) [[ -e $2 ]] && return ;;
    *) command -v -- "$2" >/dev/null 2>&1 && return ;;
  esac
  missing+=("$1")
}

# Installs with apt what `need` found missing; says so, or says what to do when it may not.
install_missing() {
  ((${#missing[@]} > 0)) || return 0
  local as_root=()
  if ! command -v apt-get >/dev/null 2>&1; then
    die "please install what these Debian packages hold, then run this again: ${missing[*]}"
  fi
  if ((EUID != 0)); then
    if command -v sudo >/dev/null 2>&1 && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
      as_root=(sudo)
    else
      die "please run as root, then run this again: apt-get install ${missing[*]}"
    fi
  fi
  say "installing with apt: ${missing[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends "${missing[@]}"
  missing=()
  hash -r
}

# The Rust toolchain is the one thing that is not installed here.
need_rust() {
  command -v cargo >/dev/null 2>&1 || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
  command -v cargo >/dev/null 2>&1 || die "there is no cargo: install Rust from https://rustup.rs and run this again"
}

# What building and running needs.
need_for_run() {
  need_rust
  need ca-certificates /etc/ssl/certs/ca-certificates.crt
  need gcc cc
  need libc6-dev /usr/include/stdio.h
  need git git
  need rsync rsync
  need openssh-client ssh
  need openssh-sftp-server /usr/lib/openssh/sftp-server
  need bubblewrap bwrap
  need util-linux nsenter
}

# Fetches a program that npm has, pinned: NAME VERSION PACKAGE-WITH-VERSION PATH-IN-NODE_MODULES. Prints its path.
fetch_with_npm() {
  local name=$1 version=$2 package=$3 path=$4
  local dir=$target/tools/$name-$version
  local program=$dir/node_modules/$path
  if [[ $("$program" --version 2>/dev/null) != *"$version"* ]]; then
    command -v npm >/dev/null 2>&1 || die "npm was not found; it is needed to fetch $package"
    say "fetching $package with npm into $dir"
    mkdir -p -- "$dir"
    if ! npm install --prefix "$dir" --no-audit --no-fund --no-save --ignore-scripts "$package" \
      </dev/null >"$dir/npm.log" 2>&1; then
      tail -n 20 -- "$dir/npm.log" >&2
      die "npm could not fetch $package (is its registry reachable?)"
    fi
    [[ $("$program" --version 2>/dev/null) == *"$version"* ]] || die "$program does not report version $version"
  fi
  printf '%s\n' "$program"
}
