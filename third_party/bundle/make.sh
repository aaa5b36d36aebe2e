#!/usr/bin/env bash
# make.sh BUILD_FOLDER BUNDLE_FOLDER: copies the built programs and all files that they need into BUNDLE_FOLDER, and
# packs the folder as BUNDLE_FOLDER.tar.xz. The bundle runs on other x86-64 Linux machines that have an NVIDIA driver
# and NVIDIA's CUDA libraries.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -f "$here/../..")
build=$1 bundle=$2
limit_mb=60

rm -rf "$bundle" "$bundle.tar.xz"
mkdir -p "$bundle"/{bin,lib,tests,bench}
for program in "$build"/app/dtrain "$build"/tests/test_* "$build"/bench/*; do
  [[ -f $program && -x $program ]] && strip -o "$bundle/bin/${program##*/}" "$program"
done

# The program looks for the shims for MPI in ../lib/dtrain.
if compgen -G "$build/lib/dtrain/*.so" >/dev/null; then
  mkdir "$bundle/lib/dtrain"
  for shim in "$build"/lib/dtrain/*.so; do
    strip -o "$bundle/lib/dtrain/${shim##*/}" "$shim"
  done
fi

# The C library and NVIDIA's libraries are not bundled: the bundle uses those of the target machine.
of_the_machine='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|nsl)|libcuda|libnvidia.*|libcu(dart|blas|blasLt|dnn).*|libnccl)\.so'
ldd "$bundle"/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u | while read -r library; do
  [[ ${library##*/} =~ $of_the_machine ]] || strip -o "$bundle/lib/${library##*/}" "$library"
done

# The bundled compiler libraries are used only if the libraries of the target machine are older. New compiler libraries
# may require a newer C library.
mkdir "$bundle/lib/compiler"
mv "$bundle"/lib/lib{stdc++,gcc_s}.so.* "$bundle/lib/compiler"
newest() {  # prints the newest version of the symbol set NAME that the files require
  local name=$1
  shift
  objdump -T "$@" | grep -oE "${name}_[0-9.]+" | sort -uV | tail -1
}
newest GLIBCXX "$bundle"/bin/* "$bundle"/lib/*.so.* >"$bundle/lib/compiler/needed"

# Copies the licenses of the copied libraries from their packages.
mkdir "$bundle/licences"
for library in "$bundle"/lib/*.so.* "$bundle"/lib/compiler/*.so.*; do
  dpkg -S "*/${library##*/}" 2>/dev/null | cut -d: -f1 | sort -u || true
done | sort -u | while read -r package; do
  [[ ! -e /usr/share/doc/$package/copyright ]] || cp /usr/share/doc/"$package"/copyright "$bundle/licences/$package"
done

cp -r "$root"/{LICENSE,NOTICE,configs,datasets} "$bundle"
cp -r "$root/tests/app" "$bundle/tests"
find "$root/bench" -mindepth 1 -maxdepth 1 ! -name __pycache__ ! -name results ! -name CMakeLists.txt \
  -exec cp -r {} "$bundle/bench" \;
cp "$here"/{dtrain,run-tests,gpu-first-hour,libraries.sh} "$bundle"
find "$bundle" -name __pycache__ -prune -exec rm -rf {} +
# Writes the names of the libraries that are opened at run time (lib/device/cuda/library.h).
grep -aohE 'lib(cublasLt|nvrtc|cudnn|nccl)\.so\.[0-9]+' "$bundle/bin/dtrain" | sort -u >"$bundle/cuda-libraries" || true

# All programs contain the same kernels. With a large dictionary, xz stores the kernels only once.
tar -C "$(dirname "$bundle")" -c "$(basename "$bundle")" | xz --lzma2=preset=3,dict=128MiB >"$bundle.tar.xz"
size=$(stat -c %s "$bundle.tar.xz")
echo "$bundle.tar.xz: $((size / 1000000)) MB; needs $(newest GLIBC "$bundle"/bin/* "$bundle"/lib/*.so.*)" \
  "or newer, and $(newest GLIBC "$bundle"/lib/compiler/*.so.*) if libstdc++ lacks $(<"$bundle/lib/compiler/needed")"
if ((size > limit_mb * 1000000)); then
  echo "make.sh: the bundle is larger than $limit_mb MB" >&2
  exit 1
fi
