#!/bin/sh
# exports.sh LIBUSHER [INCLUDE]: the headers, the library's exports and docs/symbols.txt have the same functions, and
# every export has the version USHER_0.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
library=$1 include=${2:-$here/../../include}
root=$here/../..
# The functions that the compiler sees: a function behind an #if would be missing here.
declared=$(printf '#include <usher/usher.h>\n' | ${CC:-cc} -x c -E -P -I "$include" - | tr '\n;' ' \n' |
  sed -n 's/.*visibility("default").*[ *]\(usher_[a-z0-9_]*\)(.*/\1/p' | sort -u)
written=$("$root/scripts/headers.py" --include "$include" functions | sort -u)
ledger=$(awk '/^# ----/ { inside = /^# ---- functions$/ } inside && NF == 4 && !/^#/ && $4 == "-" { print $1 }' \
  "$root/docs/symbols.txt" | sort -u)
symbols=$(nm -D --defined-only "$library" | awk '$2 ~ /^[TWBDR]$/ { print $3 }')
exported=$(printf '%s\n' "$symbols" | grep -Ev '^USHER_[0-9]+' | sed 's/@.*//' | sort -u)
versions=$(printf '%s\n' "$symbols" | sed 's/.*@//' | sort -u)
only_in_first() { # FIRST SECOND: lines of the first list that the second does not have
  printf '%s\n' "$1" | while read -r name; do printf '%s\n' "$2" | grep -qx "$name" || echo "$name"; done
}
same "the preprocessor sees the functions that the headers have" "$written" "$declared"
if [ -n "$declared" ]; then ok "the headers declare $(echo "$declared" | wc -l) functions"
else not_ok "the headers declare no function"; fi
same "the library exports every function of the headers" "" "$(only_in_first "$declared" "$exported")"
same "the library exports nothing else" "" "$(only_in_first "$exported" "$declared")"
same "docs/symbols.txt has every export (else: make generate)" "" "$(only_in_first "$exported" "$ledger")"
same "the library exports every function of docs/symbols.txt that is not removed" "" \
  "$(only_in_first "$ledger" "$exported")"
same "every export has the version USHER_0" USHER_0 "$versions"
finish
