# shellcheck shell=bash
# The bundle's scripts source this file. `run_here PROGRAM ARGS...` replaces the shell by one of the bundle's programs,
# so that signals reach the program. The program uses the bundled libraries and this machine's NVIDIA libraries, from the
# system, /usr/local/cuda, or the wheels (nvidia-cublas, nvidia-cudnn-cu13, nvidia-nccl-cu13) of the Python on PATH.
bundle=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

wheel_folders() {
  python3 -c "import glob, site, sys
for folder in dict.fromkeys([*sys.path, *site.getsitepackages(), site.getusersitepackages()]):
    if folder: print(*glob.glob(folder + '/nvidia/*/lib'), sep='\n')" 2>/dev/null || true
}

known=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null || true)

# These functions print the folders to add to LD_LIBRARY_PATH, each with a leading colon.

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
  LD_LIBRARY_PATH=$bundle/lib$(compiler_folder)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}$(cuda_folders)
  export LD_LIBRARY_PATH
  exec "$bundle/bin/$program" "$@"
}
