#!/bin/sh
# api.sh LIBUSHER [INCLUDE]: the function table of usher_get_api() against the headers; see api.c. Then again in a host that has another libcurl loaded.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
library=$(readlink -f "$1") include=${2:-$here/../../include}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
members=$(sed -n '/^typedef struct usher_api {/,/^} usher_api;/s/^  .*(\*\([a-z0-9_]*\))(.*/\1/p' "$include/usher/api.h")
functions=$(cat "$include"/usher/*.h | sed -n 's/^USHER_API [^(]*[ *]usher_\([a-z0-9_]*\)(.*/\1/p' | grep -v '^get_api$')
same "the table has the headers' functions" "$(echo "$functions" | sort)" "$(echo "$members" | sort)"
for name in $members; do echo "FUNCTION($name)"; done >"$work/functions.h"
claim "api.c builds: the table's types are the prototypes'" \
  "${CC:-cc}" -std=c99 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -pedantic -Werror -I "$include" -I "$work" "$here/api.c" -ldl -o "$work/api"
runs() { # MORE...: all that api.c tells
  timeout 20 "$work/api" "$library" "$@" >"$work/told" || true
  cat "$work/told"
  bad=$(grep -c '^not ok' "$work/told" || true)
  failed=$((failed + bad))
  grep -q '^ok - the program ends by itself' "$work/told" || not_ok "it ended before its end"
}
bound() { # the files that libusher's curl_ names were bound to, by the dynamic linker's own words
  cat "$work"/bindings.* | sed -n "s|.*binding file [^ ]*/libusher\\.so[^ ]* .* to \\([^ ]*\\) .*normal symbol .curl_.*|\\1|p" | sed 's|.*/||' | sort -u
}
if [ -x "$work/api" ]; then
  same "it is linked with nothing of ours" "" "$(readelf -d "$work/api" | grep NEEDED | grep -v libc.so || true)"
  runs
  export LD_DEBUG=bindings LD_DEBUG_OUTPUT="$work/bindings"
  runs libcurl-gnutls.so.4 # Debian package: libcurl3-gnutls
  unset LD_DEBUG LD_DEBUG_OUTPUT
  same "with another libcurl in the host, ours is bound to its own" libcurl.so.4 "$(bound)"
fi
finish
