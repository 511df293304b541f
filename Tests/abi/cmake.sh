#!/bin/sh
# install.sh SCRATCH EXAMPLE.c: CMake builds the library with SwiftPM's folder SCRATCH and installs it; a program is built against what was installed, by
# pkg-config alone, in a moved tree; and what CMake says where something is missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
root=$(cd "$here/../.." && pwd)
scratch=$1 example=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

claim "cmake configures" cmake -S "$root" -B "$work/build" -G Ninja -DUSHER_SCRATCH="$scratch"
claim "cmake builds" timeout 900 cmake --build "$work/build"
claim "it leaves libusher.so" test -f "$work/build/libusher.so"
before=$(stat -Lc %Y.%i "$work/build/libusher.so")
claim "cmake builds again" timeout 900 cmake --build "$work/build"
same "a second build leaves the library as it was" "$before" "$(stat -Lc %Y.%i "$work/build/libusher.so")"
claim "cmake installs" cmake --install "$work/build" --prefix "$work/first"
mv "$work/first" "$work/moved"
export PKG_CONFIG_PATH="$work/moved/lib/pkgconfig"
version=$(sed -n 's/^#define USHER_VERSION_[MP][A-Z]* \([0-9]*\)$/\1/p' "$root/include/usher/base.h" | paste -sd.)
same "usher.pc has the header's version" "$version" "$(pkg-config --modversion usher)"
build() { "$1" $2 -Wall -Wextra -Werror "$example" $(pkg-config --cflags --libs usher) -o "$work/example"; }
claim "an example is built with pkg-config's flags" build "${CC:-cc}" -std=c99
run() { LD_LIBRARY_PATH="$work/moved/lib" timeout 20 "$work/example" >"$work/said" 2>&1 || [ $? = 2 ]; grep -q '^usage: ' "$work/said"; }
claim "it starts" run

says_once() { # WHAT PATTERN: cmake fails and one line of its words matches
  words=$(cmake -S "$root" -B "$work/none-$1" -G Ninja 2>&1 >/dev/null) && { echo "cmake did not fail"; return 1; }
  echo "$words"
  [ "$(echo "$words" | grep -c "usher: .*$2")" = 1 ]
}
without_swift() { # the tools' folder, with every program but swift
  mkdir "$work/bin"
  find /usr/local/bin /usr/bin /bin -maxdepth 1 -name 'swift*' -prune -o -maxdepth 1 \( -type f -o -type l \) -print | while read -r tool; do
    ln -sf "$tool" "$work/bin/"
  done
  for tool in cmake ninja; do ln -sf "$(command -v $tool)" "$work/bin/"; done # wherever they are
  PATH="$work/bin" says_once swift "'swift' is not on the PATH"
}
without_curl() { PKG_CONFIG_LIBDIR="$work/none" PKG_CONFIG_PATH='' says_once curl 'libcurl4-openssl-dev'; }
claim "without swift cmake says so in one line" without_swift
claim "without libcurl's headers cmake names the package in one line" without_curl
finish
