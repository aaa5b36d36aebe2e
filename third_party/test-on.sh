#!/usr/bin/env bash
# test-on.sh [--ccache] [--keep] SYSTEM: runs the two commands of the README as root on a fresh SYSTEM (debian:12,
# debian:13 or ubuntu:24.04), as a new user of this working tree would. The fresh system has only apt. The script
# reports the time of each command. SYSTEM is installed in a folder below build/test-on. The script needs root on Debian
# or Ubuntu.
#   --ccache  reuses compiled objects of earlier runs: for debugging, not for timing
#   --keep    keeps SYSTEM's folder even if all commands succeed
set -euo pipefail
root=$(readlink -f "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/..")
top=$root/build/test-on
home=/root  # home directory of the user in the chroot
commands=("./dev run fit configs/digits-mlp.yaml" "./dev test")

fail() {
  printf 'test-on: %s\n' "$@" >&2
  exit 1
}

suite_of() {
  case $1 in
    debian:12) echo bookworm ;;
    debian:13) echo trixie ;;
    ubuntu:24.04) echo noble ;;
    *) fail "expected debian:12, debian:13 or ubuntu:24.04, found '$1'" ;;
  esac
}

# inside FOLDER COMMAND...: runs the command in a chroot with its own mount and PID namespaces, which the kernel removes
# when the last process ends. CCACHE: folder to mount as the compiler cache.
inside() {
  # shellcheck disable=SC2016
  CCACHE=${CCACHE:-} home=$home unshare --mount --pid --fork --kill-child bash -euc '
    folder=$1
    shift
    cp /etc/resolv.conf "$folder/etc"
    mount -t proc proc "$folder/proc"
    mount --rbind /sys "$folder/sys"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$folder/dev/pts"
    mount -t tmpfs tmpfs "$folder/dev/shm"
    if [[ -n $CCACHE ]]; then
      mkdir -p "$CCACHE" "$folder/var/cache/ccache"
      mount --bind "$CCACHE" "$folder/var/cache/ccache"
    fi
    exec env -i HOME="$home" LANG=C.UTF-8 TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      ${CCACHE:+CCACHE_DIR=/var/cache/ccache} \
      ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} chroot "$folder" "$@"
  ' inside "$@"
}

# base_of SYSTEM: creates SYSTEM's base system unless it exists. The base system is kept for later runs.
base_of() {
  local system=$1 base=$top/${1/:/-}.base suite
  suite=$(suite_of "$system")
  [[ ! -d $base ]] || return 0
  echo "test-on: the base system of $system ..." >&2
  rm -rf "$base.new"
  local options=(--variant=minbase)
  [[ $system != ubuntu:* ]] || options+=("--components=main,universe")
  if [[ -e /usr/share/debootstrap/scripts/$suite && -e /usr/share/keyrings/${system%:*}-archive-keyring.gpg ]]; then
    debootstrap "${options[@]}" "$suite" "$base.new" >&2
  elif [[ $system == ubuntu:* ]]; then  # older Debians lack its script or keys, so Debian 13's debootstrap is used
    base_of debian:13
    local maker=$top/maker
    rm -rf "$maker"
    cp -a "$top/debian-13.base" "$maker"
    inside "$maker" sh -euc 'apt-get -qq update && apt-get -qq install -y --no-install-recommends debootstrap ubuntu-keyring' >&2
    inside "$maker" debootstrap "${options[@]}" "$suite" /made >&2
    mv "$maker/made" "$base.new"
    rm -rf "$maker"
  else
    fail "debootstrap does not support $suite here, or the keys of its archive are missing"
  fi
  mv "$base.new" "$base"
}

# Copies the working tree, including uncommitted files, without ignored files.
clone_to() {
  git clone -q --depth 1 "file://$root" "$1"
  git -C "$1" rm -rq .
  git -C "$root" ls-files -z --cached --others --exclude-standard |
    while IFS= read -rd '' file; do [[ ! -e $root/$file ]] || printf '%s\0' "$file"; done |
    tar -C "$root" --null -T - -c | tar -C "$1" -x
}

ccache="" keep=""
while [[ ${1:-} == --* ]]; do
  case $1 in
    --ccache) ccache=yes ;;
    --keep) keep=yes ;;
    *) fail "unknown option $1" ;;
  esac
  shift
done
(($# == 1)) || fail "usage: test-on [--ccache] [--keep] debian:12|debian:13|ubuntu:24.04"
system=$1
suite_of "$system" >/dev/null
((EUID == 0)) || fail "this needs root: it installs a system in a folder and mounts file systems in it"
command -v debootstrap >/dev/null || "$root/third_party/install.sh" debootstrap

base_of "$system"
folder=$top/${system/:/-}
rm -rf "$folder"
cp -a "$folder.base" "$folder"
clone_to "$folder$home/dtrain"

times=()
for command in "${commands[@]}"; do
  echo "== $system: $command" >&2
  SECONDS=0
  CCACHE=${ccache:+$folder.ccache} inside "$folder" bash -c "cd && cd dtrain && $command" ||
    fail "$system: $command failed with $? after $SECONDS s; the system is in $folder"
  times+=("$system: $command: $SECONDS s${ccache:+ (with ccache)}")
done
[[ -n $keep ]] || rm -rf "$folder"
printf '%s\n' "== done, on $(nproc) cores:" "${times[@]}"
