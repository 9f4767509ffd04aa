# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by run.sh, which shares its variables
#
# find.sh - find NCCL, the CUDA runtime and driver, Open MPI, and the programs of this folder, and set the
# environment that makes them work together.

# ------------------------------------------------------------------- libraries

# print folders that may have a library, those of LD_LIBRARY_PATH first
places() {
  local IFS=: folder line
  for folder in ${LD_LIBRARY_PATH:-}; do echo "$folder"; done
  if command -v python3 > /dev/null; then # where pip puts them
    timeout 20 python3 -c 'import sys; print("\n".join(p for p in sys.path if p))' 2> /dev/null \
      | while read -r line; do
        for folder in nccl cu13 cu12 cuda_runtime; do echo "$line/nvidia/$folder/lib"; done
      done
  fi
  for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/local/cuda*/lib64 /usr/local/cuda*/lib \
    /usr/local/cuda*/targets/*/lib /usr/lib/*-linux-gnu /usr/lib64 /usr/local/lib ${CONDA_PREFIX:+"$CONDA_PREFIX/lib"} \
    {/usr/local,/usr,/opt/*,/opt/*/*,/opt/*/.venv,"${HOME:-/root}/.local"}/lib/python3*/{site,dist}-packages/nvidia/*/lib; do
    [ -d "$folder" ] && echo "$folder"
  done
}

find_library() { # NAME: print the path of each copy, once
  local folder path known=:
  places | while IFS= read -r folder; do
    [ -f "$folder/$1" ] || continue
    path=$(readlink -f "$folder/$1")
    case $known in *":$path:"*) continue ;; esac
    known=$known$path:
    echo "$path"
  done
}

declare -A about packed # keys and values of `probe about`, and of the folder's own file
declare -A broken       # NAME of something that later checks need -> why it is missing
if [ -f "$dir/about" ]; then
  while IFS=$'\t' read -r key value; do packed[${key:-none}]=$value; done < "$dir/about"
fi
if [ -f "$dir/missing" ]; then
  while IFS=$'\t' read -r key value; do broken[${key:-none}]="no $key: $value"; done < "$dir/missing"
fi

# Take the first NCCL and CUDA runtime that work together: of runtimes of CUDA 12 and 13 the one that the driver
# supports. moongrid asks for the CUDA runtime by the version of its headers; the few functions that it calls are
# the same in the version before, so this may take its place.
missing="" notes=() candidates=() path_before=${LD_LIBRARY_PATH:-} path_after=""
find_libraries() {
  local nccl cudart wanted driver spare="" text
  if [ -n "${broken[probe]:-}" ]; then missing=${broken[probe]} && return; fi
  wanted=libcudart.so.$((${packed[cuda]:-13000} / 1000))
  [ -z "$standin_dir" ] || path_before=$standin_dir
  export LD_LIBRARY_PATH=$path_before
  if [ -z "$standin_dir" ] && ! LD_LIBRARY_PATH=$path_before loads libcuda.so.1; then
    driver=$(find_library libcuda.so.1 | grep -v /stubs/ | head -n 1)
    [ -z "$driver" ] || path_after=:${driver%/*}
    [ -z "$driver" ] || notes+=("The driver is $driver, which the loader does not find by itself.")
  fi
  nccl=$(find_library libnccl.so.2 | head -n 1)
  if [ -z "$nccl" ]; then
    missing="libnccl.so.2 is in none of the places where it is looked for; LD_LIBRARY_PATH says where it is"
  else
    ln -sf "$nccl" "$work/libraries/libnccl.so.2"
  fi
  mapfile -t candidates < <(find_library "$wanted"; find_library libcudart.so.13; find_library libcudart.so.12
    [ -f "$dir/spare/$wanted" ] && echo "$dir/spare/$wanted")
  [ -z "$standin_dir" ] || candidates=("$standin_dir/$wanted") # no mixture with real ones
  for cudart in "${candidates[@]}"; do
    ln -sf "$cudart" "$work/libraries/$wanted"
    [ -n "$nccl" ] || break
    for spare in "" ":$dir/spare"; do
      set_path "$spare"
      limited "$limit" "$work/tried" "$dir/probe" about
      text=$(< "$work/tried")
      found_all "$text" "$cudart" "$wanted" "$spare" && return
      printf -- '--- %s with %s\n%s\n' "probe about" "$cudart" "$text" >> "$log"
      text=$(grep -v 'loaded as' <<< "$text")
      case $missing in "" | *libstdc++* | *libgcc_s*) missing=$text ;; esac # the first candidate's
      [[ $text == *libstdc++* || $text == *libgcc_s* ]] || break
    done
  done
  [ ${#candidates[@]} -gt 0 ] || missing="$missing; there is no $wanted"
}

loads() { # LIBRARY: the loader finds it
  local found
  case $(uname -m) in x86_64) found='x86-64' ;; *) found='AArch64' ;; esac
  command -v ldconfig > /dev/null && ldconfig -p 2> /dev/null | grep -F "$1" | grep -q "$found" && return
  local IFS=: folder
  for folder in $LD_LIBRARY_PATH; do [ -e "$folder/$1" ] && return; done
  return 1
}

set_path() { # SPARE: of the programs that are tried
  export LD_LIBRARY_PATH=$work/libraries:$dir:$dir/lib${path_before:+:$path_before}$path_after$1
}

found_all() { # TEXT CUDART WANTED SPARE
  local key value
  while IFS=$'\t' read -r key value; do about[${key:-none}]=$value; done <<< "$1"
  [ -n "${about[success]:-}" ] || { about=() && return 1; }
  missing=""
  [ "${2##*/}" = "$3" ] || [[ $2 == *"/$3."* ]] || notes+=("$2 was opened under the name $3.")
  case $2 in "$dir"/*) notes+=("The CUDA runtime is the packed one: none was found here.") ;; esac
  [ -z "$4" ] || notes+=("The C++ library is the packed one: none was found here.")
}

# ----------------------------------------------------------------- environment

# Open MPI on this machine alone, whatever is installed: find modules and messages by the prefixes if it
# is the packed one, do not read settings of the machine, do not look for ssh.
set_environment() {
  local pmix
  if [ -x "$dir/usr/bin/mpirun" ]; then
    mpirun=$dir/usr/bin/mpirun
    for pmix in "$dir"/usr/lib/*/pmix2; do
      export PMIX_PKGLIBDIR=$pmix/lib/pmix PMIX_PKGDATADIR=$pmix/share/pmix
    done
    export OPAL_PREFIX=$dir/usr HWLOC_PLUGINS_PATH=$dir/none
  else
    mpirun=$(command -v mpirun) || broken[mpi]="no mpirun: neither in the packed folder nor on this machine"
  fi
  export OMPI_MCA_mca_base_param_files=none OMPI_MCA_plm=isolated
  export PMIX_MCA_mca_base_param_files=none OMPI_MCA_orte_default_hostfile=none
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
  # files of a killed run are removed with the folder; and /dev/shm of a container may be small
  export OMPI_MCA_btl_vader_backing_directory=$work/mpi OMPI_MCA_orte_tmpdir_base=$work/mpi
  export OMPI_MCA_oob_tcp_if_include=lo PMIX_MCA_pcompress_base_silence_warning=1
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1
  # to NCCL ranks that share a GPU are on different machines (NCCL_HOSTID); connect them by loopback
  unset NCCL_HOSTID NCCL_MAX_CTAS NCCL_MIN_CTAS NCCL_COMM_BLOCKING
  export NCCL_DEBUG=WARN
  if [ "${about[devices]:-1}" -lt 8 ]; then
    export NCCL_SOCKET_IFNAME=lo NCCL_NET=Socket NCCL_NET_PLUGIN=none
  fi
}
