# shellcheck shell=bash
# Sourced by the bundle's scripts: `run_here PROGRAM ARGS...` runs one of its programs with the libraries beside it, and
# with NVIDIA's wherever this machine has them: known to the system, below /usr/local/cuda, or in the wheels
# (nvidia-cublas, nvidia-cudnn-cu13, nvidia-nccl-cu13) of the Python that is on PATH.
bundle=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

wheel_folders() {
  python3 -c "import glob, site, sys
for folder in dict.fromkeys([*sys.path, *site.getsitepackages(), site.getusersitepackages()]):
    if folder: print(*glob.glob(folder + '/nvidia/*/lib'), sep='\n')" 2>/dev/null || true
}

known=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null || true)

# These print the folders that have to be added, each with a colon before it.

compiler_folder() {
  local library
  library=$(awk '$1 == "libstdc++.so.6" && /x86-64/ { print $NF; exit }' <<<"$known")
  [[ -n $library ]] && grep -aqF "$(<"$bundle/lib/compiler/needed")" "$library" || echo ":$bundle/lib/compiler"
}

cuda_folders() {
  local name folder folders wheels="" found=:
  while read -r name; do
    [[ $known == *"$name "* ]] && continue
    folders=$(printf '%s\n' /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/cuda/targets/x86_64-linux/lib)
    if ! compgen -G "/usr/local/cuda/*/$name" >/dev/null; then
      wheels=${wheels:-$(wheel_folders)}
      folders+=$'\n'$wheels
    fi
    while read -r folder; do
      [[ -n $folder && -e $folder/$name ]] || continue
      [[ $found == *":$folder:"* ]] || found+=$folder:
      break
    done <<<"$folders"
  done <"$bundle/cuda-libraries"
  found=${found%:}
  echo "$found"
}

run_here() {
  local program=$1
  shift
  LD_LIBRARY_PATH=$bundle/lib$(compiler_folder)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}$(cuda_folders) "$bundle/bin/$program" "$@"
}
