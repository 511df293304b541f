#!/bin/sh
# api.sh LIBUSHER [INCLUDE]: compares the function table of usher_get_api() with the headers and with the
# recorded releases; see api.c. Then it does the same in a host that has loaded another libcurl.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
library=$(readlink -f "$1") include=${2:-$here/../../include}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers=$here/../../scripts/headers.py
members=$("$headers" --include "$include" members)
functions=$("$headers" --include "$include" functions | sed 's/^usher_//' | grep -v '^get_api$')
same "the table has the headers' functions" "$(echo "$functions" | sort)" "$(echo "$members" | sort)"
for release in $(find "$here/releases" -mindepth 1 -maxdepth 1 | sort -V); do
  recorded=$("$headers" --include "$release/include" members)
  first=$(echo "$members" | head -n "$(echo "$recorded" | wc -l)")
  same "the table begins with the functions of $(basename "$release"), in their order" "$recorded" "$first"
done
for name in $recorded; do echo "RECORDED($name)"; done >"$work/recorded.h" # the newest record
for name in $members; do echo "FUNCTION($name)"; done >"$work/functions.h"
claim "api.c builds: the table's types are the prototypes'" \
  "${CC:-cc}" -std=c99 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -pedantic -Werror -I "$include" -I "$work" \
  "$here/api.c" -ldl -o "$work/api"
runs() { # MORE...: prints and counts the claims of api.c
  timeout 20 "$work/api" "$library" "$@" >"$work/told" || true
  cat "$work/told"
  bad=$(grep -c '^not ok' "$work/told" || true)
  failed=$((failed + bad))
  grep -q '^ok - the program ends by itself' "$work/told" || not_ok "the program stopped early"
}
bound() { # the files to which the dynamic linker bound libusher's curl_ symbols
  cat "$work"/bindings.* |
    sed -n "s|.*binding file [^ ]*/libusher\\.so[^ ]* .* to \\([^ ]*\\) .*normal symbol .curl_.*|\\1|p" |
    sed 's|.*/||' | sort -u
}
if [ -x "$work/api" ]; then
  same "it is not linked with libusher" "" "$(readelf -d "$work/api" | grep NEEDED | grep -v libc.so || true)"
  runs
  export LD_DEBUG=bindings LD_DEBUG_OUTPUT="$work/bindings"
  runs libcurl-gnutls.so.4 # Debian package: libcurl3-gnutls
  unset LD_DEBUG LD_DEBUG_OUTPUT
  same "with another libcurl in the host, ours is bound to its own" libcurl.so.4 "$(bound)"
fi
finish
