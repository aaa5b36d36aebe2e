#!/usr/bin/env bash
# install.sh [PACKAGE...]: installs the packages needed to build and test dtrain, and the PACKAGEs. Does nothing if all
# of them are installed. Needs only apt, and root or sudo. Writes only to standard error.
#
# Supported: Debian 12 and 13, Ubuntu 24.04 (`./dev test-on` tests each). On later releases, the script prints a warning
# and tries to install the packages. Earlier releases are not supported: Ubuntu 22.04 has oneDNN 2.2; dtrain needs 2.6.
set -euo pipefail

supported="Debian 12 and 13, Ubuntu 24.04"
packages=(
  g++ cmake ninja-build ccache                      # tools
  libyaml-cpp-dev libcli11-dev libfmt-dev libisal-dev libhdf5-dev libdnnl-dev  # libraries
  libjpeg-dev libpng-dev                            # image libraries
  openmpi-bin libopenmpi-dev                        # several machines
  doctest-dev python3                               # tests
  "$@"
)
build_it="cmake --preset release && cmake --build --preset release"

say() {
  printf 'install.sh: %s\n' "$@" >&2
}

fail() {
  say "$@"
  exit 1
}

# shellcheck disable=SC1090
system=$({ . "${DTRAIN_OS_RELEASE:-/etc/os-release}" && echo "${ID:-}:${VERSION_ID:-}"; } 2>/dev/null) || system=
untried=
case $system in
  debian:12 | debian:13 | ubuntu:24.04) ;;
  debian:[1-9] | debian:1[01] | ubuntu:[1-9].* | ubuntu:1?.* | ubuntu:2[0-3].*)
    fail "$system is not supported: its libraries are too old (dtrain needs oneDNN 2.6; Ubuntu 22.04 has 2.2)." \
      "Supported: $supported. With newer libraries from other sources: $build_it"
    ;;
  *) untried="${system:-this system} has not been tested. Supported: $supported." ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  fail "$untried" "There is no apt-get here. Install the contents of these packages by other means: ${packages[*]}" \
    "(oneDNN 2.6 or later), then build with: $build_it"
fi

installed=" $(dpkg-query -W -f '${Package}:${db:Status-Status} ' "${packages[@]}" 2>/dev/null || true)"
missing=()
for package in "${packages[@]}"; do
  [[ $installed == *" $package:installed "* ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0
[[ -z $untried ]] || say "$untried"

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    fail "missing: ${missing[*]}" "Installing them needs root, but sudo is not available. As root, run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >"$log" 2>&1 || {
    cat "$log" >&2
    fail "apt-get $* failed; see its output above."
  }
}

echo "installing ${missing[*]} ..." >&2
((EUID == 0)) || sudo -v  # prompts for the password before output is captured
apt update
apt install -y --no-install-recommends "${missing[@]}"
