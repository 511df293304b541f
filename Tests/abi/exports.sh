#!/bin/sh
# exports.sh LIBUSHER [INCLUDE]: the headers' functions are the library's exports, both ways, all of one version, and nothing else is.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
library=$1 include=${2:-$here/../../include}
declared=$(printf '#include <usher/usher.h>\n' | ${CC:-cc} -x c -E -P -I "$include" - | tr '\n;' ' \n' | sed -n 's/.*visibility("default").*[ *]\(usher_[a-z0-9_]*\)(.*/\1/p' | sort -u)
marked=$(cat "$include"/usher/*.h | sed -n 's/^USHER_API [^(]*[ *]\(usher_[a-z0-9_]*\)(.*/\1/p' | sort -u)
exported=$(nm -D --defined-only "$library" | awk '$2 ~ /^[TWBDR]$/ && $3 !~ /^USHER_[0-9]+/ {sub(/@.*/, "", $3); print $3}' | sort -u)
versions=$(nm -D --defined-only "$library" | awk '$2 ~ /^[TWBDR]$/ {n = split($3, part, "@"); print part[n]}' | sort -u)
same "the preprocessor sees the prototypes that stand in the headers" "$marked" "$declared"
[ -n "$declared" ] && ok "the headers declare $(echo "$declared" | wc -l) functions" || not_ok "the headers declare no function"
same "what the headers declare and the library does not export: nothing" "" "$(printf '%s\n' "$declared" | while read -r name; do printf '%s\n' "$exported" | grep -qx "$name" || echo "$name"; done)"
same "what the library exports and the headers do not declare: nothing" "" "$(printf '%s\n' "$exported" | while read -r name; do printf '%s\n' "$declared" | grep -qx "$name" || echo "$name"; done)"
same "every export has the version USHER_0" USHER_0 "$versions"
finish
