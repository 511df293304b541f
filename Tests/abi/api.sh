#!/bin/sh
# api.sh LIBUSHER [INCLUDE]: the function table of usher_get_api() against the headers; see api.c.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
library=$(readlink -f "$1") include=${2:-$here/../../include}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
members=$(sed -n '/^typedef struct usher_api {/,/^} usher_api;/s/^  .*(\*\([a-z_]*\))(.*/\1/p' "$include/usher/api.h")
functions=$(cat "$include"/usher/*.h | sed -n 's/^USHER_API [^(]*[ *]usher_\([a-z0-9_]*\)(.*/\1/p' | grep -v '^get_api$')
same "the table has the headers' functions" "$(echo "$functions" | sort)" "$(echo "$members" | sort)"
for name in $members; do echo "FUNCTION($name)"; done >"$work/functions.h"
claim "api.c builds: the table's types are the prototypes'" \
  "${CC:-cc}" -std=c99 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -pedantic -Werror -I "$include" -I "$work" "$here/api.c" -ldl -o "$work/api"
if [ -x "$work/api" ]; then
  timeout 20 "$work/api" "$library" >"$work/told" || true
  cat "$work/told"
  bad=$(grep -c '^not ok' "$work/told" || true)
  failed=$((failed + bad))
  grep -q '^ok - the program ends by itself' "$work/told" || not_ok "it ended before its end"
fi
finish
