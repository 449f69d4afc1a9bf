#!/bin/sh
# Installs a release of fullsend: fetches the archive for this machine, verifies it, and puts the program into a
# directory. docs/guide/install.md says more.
#
# usage: install.sh [--version VERSION] [--dir DIR] [--repository OWNER/NAME] [--require-signature]
#
#   --version            a release, e.g. 1.2.3 [the newest]
#   --dir                where the program goes [~/.local/bin]
#   --repository         where the releases are [FULLSEND_REPOSITORY; the copy of a release knows its own]
#   --require-signature  refuse when neither cosign nor gh is here to check who built it
#
#   FULLSEND_DOWNLOAD_URL  a mirror: the directory that has the files of the release, instead of the repository;
#                          https, or file for a copy on this machine. Needs --version.
#
# The checksum is always verified. Who built it is verified where cosign or gh is installed.
set -eu

version='' dir=${HOME:?}/.local/bin signature=''
# The release workflow writes the name of its repository here.
repository=${FULLSEND_REPOSITORY:-@REPOSITORY@}
while [ $# -gt 0 ]; do
  case $1 in
    --version) version=${2:?"--version needs a value"} && shift ;;
    --dir) dir=${2:?"--dir needs a value"} && shift ;;
    --repository) repository=${2:?"--repository needs a value"} && shift ;;
    --require-signature) signature=required ;;
    *)
      echo "install.sh: there is no option $1" >&2
      exit 2
      ;;
  esac
  shift
done

say() { printf 'install.sh: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

mirror=${FULLSEND_DOWNLOAD_URL:-}
case $repository in
  *[!A-Za-z0-9._/-]* | */*/* | /* | */ | '') repository='' ;;
  */*) ;;
  *) repository='' ;;
esac
[ "$repository" ] || [ "$mirror" ] || die 'name the repository of the releases: --repository OWNER/NAME'
for program in tar gzip; do has "$program" || die "$program is needed"; done
has curl || die 'curl is needed'
if has sha256sum; then sum='sha256sum'; elif has shasum; then sum='shasum -a 256'; else die 'sha256sum or shasum is needed'; fi

case $(uname -m) in
  x86_64 | amd64) machine=x86_64 ;;
  aarch64 | arm64) machine=aarch64 ;;
  *) die "there is no build for the processor $(uname -m); build it from source" ;;
esac
case $(uname -s) in
  Linux)
    # The build for glibc was made with that of Ubuntu 22.04, 2.35; the other one needs none.
    libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc 2\.\([0-9][0-9]*\).*/\1/p')
    if [ "${libc:-0}" -ge 35 ]; then triple=$machine-unknown-linux-gnu; else triple=$machine-unknown-linux-musl; fi
    ;;
  Darwin) triple=$machine-apple-darwin ;;
  *) die "there is no build for $(uname -s)" ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/fullsend-install.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fetch() { # fetch NAME URL
  curl -fsSL --retry 3 --proto '=https,file' --proto-redir '=https' --tlsv1.2 -o "$work/$1" "$2"
}

if [ -z "$version" ]; then
  [ -z "$mirror" ] || die 'with FULLSEND_DOWNLOAD_URL the version has to be named: --version VERSION'
  # The address of the newest release redirects to that of its tag.
  place=$(curl -fsSL --retry 3 --proto '=https' --tlsv1.2 -o /dev/null -w '%{url_effective}' \
    "https://github.com/$repository/releases/latest") || die 'the newest release cannot be found; name it with --version'
  version=${place##*/}
fi
version=${version#v}
case $version in
  '' | *[!0-9A-Za-z.+-]*) die "'$version' is no version" ;;
esac
base=${mirror:-https://github.com/$repository/releases/download/v$version}
base=${base%/}
name=fullsend-$version-$triple

say "fetching $name from $base"
fetch SHA256SUMS "$base/SHA256SUMS" || die "there is no list of checksums at $base (is $version a release?)"
fetch archive "$base/$name.tar.gz" || die "$base has no build for $triple"

wanted=$(awk -v name="$name.tar.gz" '{ sub(/^\*/, "", $2) } $2 == name { print $1; exit }' "$work/SHA256SUMS")
[ "$wanted" ] || die "the list of checksums has no line for $name.tar.gz"
found=$($sum "$work/archive" | cut -d' ' -f1)
[ "$found" = "$wanted" ] || die "$name.tar.gz has the SHA-256 $found, but $wanted was published: not installed"

# Who built it: the certificate has to name the release workflow of the repository at this very tag.
if [ "$repository" ] && has cosign; then
  fetch bundle "$base/SHA256SUMS.sigstore.json" || die "the signature of the checksums is missing at $base"
  cosign verify-blob --bundle "$work/bundle" \
    --certificate-identity "https://github.com/$repository/.github/workflows/release.yml@refs/tags/v$version" \
    --certificate-oidc-issuer https://token.actions.githubusercontent.com "$work/SHA256SUMS" >"$work/said" 2>&1 || {
    cat "$work/said" >&2
    die 'the signature is not that of the release workflow: not installed'
  }
  say 'checksum and signature are right'
elif [ "$repository" ] && has gh && gh auth status >/dev/null 2>&1; then
  gh attestation verify "$work/archive" --repo "$repository" --source-ref "refs/tags/v$version" \
    --signer-workflow "$repository/.github/workflows/release.yml" >"$work/said" 2>&1 || {
    cat "$work/said" >&2
    die 'the archive has no attestation of the release workflow: not installed'
  }
  say 'checksum and attestation are right'
elif [ "$signature" ]; then
  die 'neither cosign nor a logged-in gh is here to check the signature, or --repository is missing: not installed'
else
  say 'the checksum is right; who built it was not checked (install cosign or gh for that)'
fi

# One file of the archive, through a pipe: nothing else of it is unpacked.
mkdir -p "$dir"
tar -xzOf "$work/archive" "$name/fullsend" >"$work/fullsend" || die 'the archive does not hold the program'
chmod 0755 "$work/fullsend"
"$work/fullsend" --version >/dev/null || die 'the program does not run on this machine'
# Beside the old one first, so that a running fullsend is not written to and none is missing in between.
cp "$work/fullsend" "$dir/.fullsend.new.$$"
mv -f "$dir/.fullsend.new.$$" "$dir/fullsend"
say "$("$dir/fullsend" --version) is in $dir"
case :$PATH: in *":$dir:"*) ;; *) say "add $dir to your PATH" ;; esac
