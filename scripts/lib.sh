# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=bash
#
# What scripts/demo, scripts/test and .ci/run share. Sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/.deps
jobs=$(nproc)

say() { printf '==> %s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Without it a failing command would end a script silently.
report_failure() {
  local status=$? line=${BASH_LINENO[0]} command=$BASH_COMMAND
  if ((BASH_SUBSHELL == 0)); then
    printf '%s: stopped (exit status %d) at line %s: %s\n' "${0##*/}" "$status" "$line" "$command" >&2
  fi
}
set -E
trap report_failure ERR

# ---- packages ---------------------------------------------------------------------------------------

require_base_tools() {
  local tool
  for tool in "${CXX:-c++}" cmake git; do
    command -v "$tool" >/dev/null || die "$tool is needed and was not found; install g++, cmake and git first."
  done
  local version
  version=$(cmake --version | sed -n '1s/^cmake version //p')
  [[ $(printf '3.22\n%s\n' "$version" | sort -V | head -n 1) == 3.22 ]] ||
    die "CMake 3.22 or newer is needed, found $version."
}

is_installed() {
  [[ $(dpkg-query -W -f='${Status}' "$1" 2>/dev/null) == "install ok installed" ]]
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

install_packages() {
  local package missing=()
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: taking for granted what these packages provide: $*"
    return
  fi
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  # sudo may ask for a password only where somebody can type it.
  if ((EUID != 0)) && ! sudo -n true 2>/dev/null && ! { command -v sudo >/dev/null && [[ -t 0 ]]; }; then
    die "these packages are missing, and installing them takes root or sudo: ${missing[*]}"
  fi
  say "installing ${missing[*]}"
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends
    -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 -q "${missing[@]}")
  # The package lists may be absent or too old to install from; an update takes a while, so only then.
  if ! apt-get install --simulate "${missing[@]}" >/dev/null 2>&1 || ! as_root "${install[@]}"; then
    say "updating the package lists"
    as_root apt-get update -q -o Acquire::Retries=3 ||
      die "apt-get update failed, so these packages cannot be installed: ${missing[*]}"
    for package in "${missing[@]}"; do
      apt-get install --simulate "$package" >/dev/null 2>&1 ||
        die "the package $package is not to be had from this machine's apt sources."
    done
    as_root "${install[@]}" || die "apt-get could not install: ${missing[*]}"
  fi
}

# ---- Kokkos -----------------------------------------------------------------------------------------

# Sets kokkos_dir (the folder of KokkosConfig.cmake), kokkos_version and kokkos_devices of the Kokkos that
# find_package finds with the given arguments; fails if there is none.
probe_kokkos() {
  local probe found
  probe=$(mktemp -d)
  cat >"$probe/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(probe LANGUAGES CXX)
find_package(Kokkos 3.4 CONFIG)
if(Kokkos_FOUND)
  message(STATUS "probe:${Kokkos_DIR}:${Kokkos_VERSION}:${Kokkos_DEVICES}")
endif()
EOF
  # Generating may fail on the broken include path that the library's own build repairs; it does not matter here.
  found=$(cmake -G Ninja -S "$probe" -B "$probe/build" "$@" 2>/dev/null | sed -n 's/^-- probe://p' || true)
  rm -rf "$probe"
  [[ -n $found ]] || return 1
  IFS=: read -r kokkos_dir kokkos_version kokkos_devices <<<"$found"
}

has_parallel_host_space() { [[ ";${kokkos_devices^^};" =~ \;(OPENMP|THREADS|PTHREAD|HPX)\; ]]; }

# Sets kokkos_dir: the Kokkos that is there already (Kokkos_ROOT, CMAKE_PREFIX_PATH, the system) if it has a
# parallel host space, else one built from the distribution's source package.
find_or_build_kokkos() {
  local built=$deps/kokkos
  if probe_kokkos; then
    if has_parallel_host_space; then
      say "using Kokkos $kokkos_version ($kokkos_devices) from $kokkos_dir"
      return
    fi
    say "Kokkos $kokkos_version in $kokkos_dir has no parallel host space ($kokkos_devices)"
  else
    say "no Kokkos found"
  fi
  mkdir -p "$deps"
  exec 9>"$deps/lock"
  flock 9
  if [[ $(cat "$built/recipe" 2>/dev/null) != "$kokkos_recipe" ]]; then
    build_kokkos "$built"
  fi
  flock -u 9
  exec 9>&-
  probe_kokkos "-DKokkos_ROOT=$built" || die "the Kokkos built in $built cannot be found by CMake."
  say "using Kokkos $kokkos_version ($kokkos_devices) from $kokkos_dir"
}

# Changes when build_kokkos or build_cuda_kokkos changes, so that an older result is built again.
kokkos_recipe=1

# Unpacks Kokkos and Kokkos Kernels from the distribution's source package trilinos into $1/src.
unpack_kokkos() {
  command -v apt-get >/dev/null ||
    die "no usable Kokkos was found and this machine has no apt-get to fetch one; set Kokkos_ROOT."
  install_packages ninja-build ca-certificates
  rm -rf "$1"
  mkdir -p "$1/src"
  download_source trilinos "$1/download"
  say "unpacking Kokkos and Kokkos Kernels"
  tar -xf "$1"/download/trilinos_*.orig.tar.* -C "$1/src" --strip-components=1 \
    --wildcards '*/packages/kokkos' '*/packages/kokkos-kernels'
}

# Moves the installation in $1 to its place $2, as the last thing that can fail.
finish_kokkos() {
  grep -rlF "$1" "$1/lib/cmake" | xargs -r sed -i "s|$1|$2|g"
  echo "$kokkos_recipe" >"$1/recipe"
  rm -rf "$2"
  mv "$1" "$2"
}

# Kokkos (OpenMP and Serial) and Kokkos Kernels, installed into $1. All work is done in a folder of its own, which is
# moved to its place when it is complete.
build_kokkos() {
  local work=$deps/work stage=$deps/work/installed
  say "building Kokkos with OpenMP and Kokkos Kernels from the distribution's source package trilinos (once)"
  unpack_kokkos "$work"

  local common=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=17 "-DCMAKE_INSTALL_PREFIX=$stage"
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON)
  say "building Kokkos"
  logged "$work/kokkos.log" cmake -S "$work/src/packages/kokkos" -B "$work/kokkos" "${common[@]}" \
    -DKokkos_ENABLE_OPENMP=ON -DKokkos_ENABLE_SERIAL=ON
  cmake --build "$work/kokkos" --parallel "$jobs"
  logged "$work/kokkos.log" cmake --install "$work/kokkos"

  # Without precompiled instances: they would take twenty minutes, and only the benchmarks use a few of them.
  say "building Kokkos Kernels"
  logged "$work/kokkos-kernels.log" cmake -S "$work/src/packages/kokkos-kernels" -B "$work/kokkos-kernels" \
    "${common[@]}" "-DKokkos_ROOT=$stage" -DKokkosKernels_ADD_DEFAULT_ETI=OFF -DKokkosKernels_INST_DOUBLE=OFF \
    -DKokkosKernels_INST_LAYOUTLEFT=OFF -DKokkosKernels_INST_LAYOUTRIGHT=OFF \
    -DKokkosKernels_ENABLE_TESTS=OFF -DKokkosKernels_ENABLE_EXAMPLES=OFF
  cmake --build "$work/kokkos-kernels" --parallel "$jobs"
  logged "$work/kokkos-kernels.log" cmake --install "$work/kokkos-kernels"
  finish_kokkos "$stage" "$1"
  rm -rf "$work"
}

# Sets kokkos_dir: a Kokkos with CUDA, built from the distribution's source with a few edits for CUDA 13. It compiles
# and links everywhere; to run it takes a GPU.
find_or_build_cuda_kokkos() {
  local built=$deps/kokkos-cuda work=$deps/work-cuda
  if [[ $(cat "$built/recipe" 2>/dev/null) != "$kokkos_recipe" ]]; then
    say "building Kokkos with CUDA from the distribution's source package trilinos (once)"
    unpack_kokkos "$work"
    python3 "$root/scripts/kokkos_for_cuda13.py" "$work/src/packages/kokkos"
    logged "$work/kokkos.log" env -u CMAKE_CXX_COMPILER_LAUNCHER cmake -G Ninja -S "$work/src/packages/kokkos" \
      -B "$work/kokkos" "-DCMAKE_CXX_COMPILER=$work/src/packages/kokkos/bin/nvcc_wrapper" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_CXX_STANDARD=17 -DCMAKE_CXX_EXTENSIONS=OFF "-DCMAKE_INSTALL_PREFIX=$work/installed" \
      -DCMAKE_INSTALL_LIBDIR=lib -DKokkos_ENABLE_CUDA=ON -DKokkos_ENABLE_CUDA_LAMBDA=ON -DKokkos_ARCH_AMPERE80=ON \
      -DKokkos_ENABLE_OPENMP=OFF -DKokkos_ENABLE_SERIAL=ON
    logged "$work/kokkos.log" cmake --build "$work/kokkos" --parallel "$jobs"
    logged "$work/kokkos.log" cmake --install "$work/kokkos"
    finish_kokkos "$work/installed" "$built"
    rm -rf "$work"
  fi
  probe_kokkos "-DKokkos_ROOT=$built" || die "the Kokkos built in $built cannot be found by CMake."
}

# Runs a command with its output in a file, and shows the end of the file if the command fails.
logged() {
  local log=$1
  shift
  if ! "$@" >>"$log" 2>&1; then
    tail -n 40 "$log" >&2
    die "this failed (its output is in $log): $*"
  fi
}

# Downloads the files of the source package $1 into the folder $2. The machine's own apt sources are read as deb-src,
# with lists and caches of their own: its configuration stays as it is, and signatures are checked as always.
download_source() {
  local package=$1 folder=$2 apt=$2/apt list='' parts='' file
  mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache/archives/partial"
  eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
  local suites
  suites="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)"
  suites="${suites:-stable}|oldoldstable|oldstable|stable|testing|unstable|sid"
  for file in "$list" "$parts"/*.list "$parts"/*.sources; do
    [[ -f $file ]] || continue
    case $file in
      *.sources) deb822_as_source "$suites" <"$file" ;;
      *) sed -nE "s/^[[:space:]]*deb([[:space:]]+(\[[^]]*\][[:space:]]+)?[^[:space:]]+[[:space:]]+($suites))/deb-src\1/p" "$file" ;;
    esac >"$apt/sources/${file##*/}"
    [[ -s $apt/sources/${file##*/} ]] || rm "$apt/sources/${file##*/}"
  done
  [[ -n $(ls "$apt/sources") ]] || die "found no apt source of this distribution to fetch the source of $package from."

  local options=(-q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/sources"
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o Acquire::Retries=3)
  say "reading the lists of source packages"
  apt-get "${options[@]}" update || die "the distribution's lists of source packages cannot be fetched."
  say "downloading the source of $package"
  (cd "$folder" && apt-get "${options[@]}" source --download-only "$package") ||
    die "the source package $package is not to be had from this machine's apt sources."
  rm -rf "$apt"
}

# Filter for the deb822 format: the stanzas of binary packages of the given suites (a regular expression), as deb-src.
deb822_as_source() {
  awk -v suites="$1" '
    BEGIN { RS = ""; FS = "\n" }
    {
      types = 0; match_suite = 0; text = ""
      for (i = 1; i <= NF; ++i) {
        line = $i
        if (tolower(line) ~ /^types:/) {
          if (line ~ /[ \t:]deb([ \t]|$)/) types = 1
          line = "Types: deb-src"
        } else if (tolower(line) ~ /^suites:/ && line ~ ("[ \t:](" suites ")")) {
          match_suite = 1
        }
        text = text line "\n"
      }
      if (types && match_suite) print text
    }'
}

# ---- build and test ---------------------------------------------------------------------------------

# configure <build folder> <argument>...: with the Kokkos in kokkos_dir, Ninja where the folder is new.
configure() {
  local build=$1 generator=()
  shift
  [[ -f $build/CMakeCache.txt ]] || generator=(-G Ninja)
  mkdir -p "$build"
  if ! cmake -S "$root" -B "$build" "${generator[@]}" "-DKokkos_DIR=$kokkos_dir" "$@" >"$build/configure.log" 2>&1; then
    cat "$build/configure.log" >&2
    die "CMake could not configure $build (see above)."
  fi
  sed -n '/^-- KokkosOzaki /,$s/^-- \(.*[^ ].*\)$/    \1/p' "$build/configure.log" |
    grep -v -e 'Configuring done' -e 'Generating done' -e 'Build files' || true
}

# run_ctest <build folder> <argument>...: all tests but those with a label in ctest_exclude (a regular expression; a
# second -LE would not add to the first); counts in <build folder>/ctest.xml.
ctest_exclude=exhaustive
run_ctest() {
  local build=$1
  shift
  rm -f "$build/ctest.xml"
  ctest --test-dir "$build" -LE "$ctest_exclude" --output-on-failure --no-tests=error --parallel "$jobs" \
    --output-junit "$(cd "$build" && pwd)/ctest.xml" "$@"
}
