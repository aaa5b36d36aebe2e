#!/usr/bin/env bash
# Downloads public data sets to the folder from which the .yaml files here read them, and verifies each download.
#
#   datasets/download.sh NAME...        NAME: mnist, fashion-mnist, cifar10
#
# The folder is $DTRAIN_DATA, or the folder of this script if that variable is not set. Complete files that are already
# there are not downloaded again. With DTRAIN_MIRROR=URL, the files come from URL/NAME/FILE.
set -euo pipefail
target=${DTRAIN_DATA:-$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")}

fail() {
  echo "download.sh: $*" >&2
  exit 1
}

# SHA-256 sums. `content`: sum of the uncompressed file, because MNIST's mirrors compress it differently; `file`: sum of
# the file itself.
sums() {
  case $1 in
    mnist) cat <<'END' ;;
content ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db train-images-idx3-ubyte.gz
content 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5 train-labels-idx1-ubyte.gz
content 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7 t10k-images-idx3-ubyte.gz
content ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2 t10k-labels-idx1-ubyte.gz
END
    fashion-mnist) cat <<'END' ;;
file 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84 train-images-idx3-ubyte.gz
file a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845 train-labels-idx1-ubyte.gz
file 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073 t10k-images-idx3-ubyte.gz
file 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5 t10k-labels-idx1-ubyte.gz
END
    cifar10) echo file c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd cifar-10-binary.tar.gz ;;
    *) fail "unknown data set '$1' (known: mnist, fashion-mnist, cifar10)" ;;
  esac
}

source_of() {
  case ${DTRAIN_MIRROR:+mirror}$1 in
    mirror*) echo "$DTRAIN_MIRROR/$1" ;;
    mnist) echo https://ossci-datasets.s3.amazonaws.com/mnist ;;
    fashion-mnist) echo https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion ;;
    cifar10) echo https://www.cs.toronto.edu/~kriz ;;
  esac
}

# sum_of content|file PATH: prints the SHA-256 sum of a file or of its uncompressed content.
sum_of() {
  if [[ $1 == content ]]; then gzip -dc "$2"; else cat "$2"; fi 2>/dev/null | sha256sum | cut -d ' ' -f 1
}

fetch() {  # URL PATH
  if command -v curl >/dev/null; then
    curl -fL --progress-bar -o "$2" "$1"
  elif command -v wget >/dev/null; then
    wget -nv -O "$2" "$1"
  else
    fail "neither curl nor wget is here; install one"
  fi
}

# Downloads a file unless it already has this sum. The file gets its final name only after its sum has been verified.
fetch_verified() {  # URL PATH KIND SUM
  local part=$2.part found
  [[ -e $2 && $(sum_of "$3" "$2" || true) == "$4" ]] && return
  echo "$1" >&2
  fetch "$1" "$part" || { rm -f "$part" && fail "could not fetch $1"; }
  found=$(sum_of "$3" "$part") || true
  if [[ $found != "$4" ]]; then
    rm -f "$part"
    fail "$1: expected the SHA-256 sum $4 (of the $3), found $found"
  fi
  mv "$part" "$2"
}

download() {  # NAME
  local kind sum file folder=$target/$1 batches=$target/cifar-10-batches-bin
  [[ $1 == cifar10 && -e $batches ]] && return
  mkdir -p "$folder"
  while read -r kind sum file; do
    fetch_verified "$(source_of "$1")/$file" "$folder/$file" "$kind" "$sum"
  done < <(sums "$1")
  if [[ $1 == cifar10 ]]; then  # unpacked to a temporary folder, so that the final folder is always complete
    tar -xzf "$folder/cifar-10-binary.tar.gz" -C "$folder"
    mv -T "$folder/cifar-10-batches-bin" "$batches"
    rm -r "$folder"
  fi
}

(($#)) || fail "name one or more of: mnist, fashion-mnist, cifar10"
for name; do sums "$name" >/dev/null; done
for name; do
  download "$name"
  echo "$name: complete, every sum is right" >&2
done
