#!/bin/sh
# dlopen.sh LIBUSHER: builds dlopen.c without the headers and the library, and runs it with the library's path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
library=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
claim "dlopen.c builds" \
  "${CC:-cc}" -std=gnu99 -D_GNU_SOURCE -Wall -Wextra -Werror "$here/dlopen.c" -ldl -o "$work/dlopen"
same "it is not linked with libusher" "" "$(readelf -d "$work/dlopen" | grep NEEDED | grep -v libc.so || true)"
timeout 20 "$work/dlopen" "$library" >"$work/told" || true
cat "$work/told"
bad=$(grep -c '^not ok' "$work/told" || true)
failed=$((failed + bad))
grep -q '^ok - the program ends by itself' "$work/told" || not_ok "the program stopped early"
finish
