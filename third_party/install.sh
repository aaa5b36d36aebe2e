#!/usr/bin/env bash
# Installs what building and testing dtrain needs on Debian 12+ and Ubuntu 22.04+, and nothing where it is all there.
# Works on a machine that has nothing but apt: as root, or through sudo. Everything it says goes to standard error.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache                      # the tools
  libyaml-cpp-dev libcli11-dev libfmt-dev libisal-dev libhdf5-dev libdnnl-dev  # the libraries
  doctest-dev clang-format python3                  # the tests
)

fail() {
  printf 'install.sh: %s\n' "$@" >&2
  exit 1
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  fail "this is no Debian or Ubuntu (apt-get was not found)." \
    "Install by your own means what these packages hold: ${packages[*]}" \
    "then build with: cmake --preset release && cmake --build --preset release"
fi

installed=" $(dpkg-query -W -f '${Package}:${db:Status-Status} ' "${packages[@]}" 2>/dev/null || true)"
missing=()
for package in "${packages[@]}"; do
  [[ $installed == *" $package:installed "* ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    fail "missing: ${missing[*]}" "Installing them needs root, and there is no sudo here. As root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >"$log" 2>&1 || {
    cat "$log" >&2
    fail "apt-get $* failed; its output stands above."
  }
}

echo "installing ${missing[*]} ..." >&2
((EUID == 0)) || sudo -v  # asks for the password before the output is captured
apt update
apt install -y --no-install-recommends "${missing[@]}"
