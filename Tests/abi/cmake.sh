#!/bin/sh
# cmake.sh SCRATCH: CMake builds the library twice, in SwiftPM's folder SCRATCH. On a machine without Swift or libcurl,
# CMake names the missing part. Tests/install/run tests the installed files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
root=$(cd "$here/../.." && pwd)
scratch=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

claim "cmake configures" cmake -S "$root" -B "$work/build" -G Ninja -DUSHER_SCRATCH="$scratch"
claim "cmake builds" timeout 900 cmake --build "$work/build"
claim "it leaves libusher.so" test -f "$work/build/libusher.so"
before=$(stat -Lc %Y.%i "$work/build/libusher.so")
claim "cmake builds again" timeout 900 cmake --build "$work/build"
same "a second build leaves the library as it was" "$before" "$(stat -Lc %Y.%i "$work/build/libusher.so")"

says_once() { # WHAT PATTERN: cmake fails, and one line of its output matches
  words=$(cmake -S "$root" -B "$work/none-$1" -G Ninja 2>&1 >/dev/null) && { echo "cmake did not fail"; return 1; }
  echo "$words"
  [ "$(echo "$words" | grep -c "usher: .*$2")" = 1 ]
}
path_without_swift() { # a folder that has every program except swift
  mkdir "$work/bin"
  find /usr/local/bin /usr/bin /bin -maxdepth 1 -name 'swift*' -prune -o -maxdepth 1 \( -type f -o -type l \) -print |
    while read -r tool; do ln -sf "$tool" "$work/bin/"; done
  for tool in cmake ninja; do ln -sf "$(command -v $tool)" "$work/bin/"; done # they may be in other folders
}
without_swift() { PATH="$work/bin" says_once swift "'swift' is not on the PATH"; }
prebuilt() { # without swift, with the library that was built above
  PATH="$work/bin" cmake -S "$root" -B "$work/prebuilt" -G Ninja -DUSHER_PREBUILT="$work/build" &&
    PATH="$work/bin" cmake --build "$work/prebuilt"
}
no_library() { # USHER_PREBUILT names a folder without a library
  cmake -S "$root" -B "$work/no" -G Ninja -DUSHER_PREBUILT="$work/bin" 2>&1 |
    grep -F "$work/bin/libusher.so.0 is missing"
}
path_without_swift
without_curl() { PKG_CONFIG_LIBDIR="$work/none" PKG_CONFIG_PATH='' says_once curl 'libcurl4-openssl-dev'; }
claim "without swift cmake says so in one line" without_swift
claim "without swift cmake takes a built library (USHER_PREBUILT)" prebuilt
claim "it is the built library" cmp "$work/build/libusher.so.0" "$work/prebuilt/libusher.so.0"
claim "without a built library there cmake names the missing file" no_library
claim "without libcurl's headers cmake names the package in one line" without_curl
finish
