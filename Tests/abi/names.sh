#!/bin/sh
# names.sh LIBUSHER [INCLUDE]: names.c, filled with every constant and INIT macro that stands in the headers, runs against the library: as C99 and as C++11.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
library=$1 include=${2:-$here/../../include}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
list() { sed -n "s/^#define \($1[A-Z0-9_]*\)\( .*\|\$\)/\1/p" "$include/usher/$2"; }
{
  list USHER_OK error.h | sed 's/.*/STATUS(&)/'
  list USHER_E_ error.h | sed 's/.*/STATUS(&)/'
  list USHER_ORIGIN_ error.h | sed 's/.*/ORIGIN(&)/'
  list USHER_OPERATION_ error.h | sed 's/.*/OPERATION(&)/'
  list USHER_EVENT_ event.h | grep -v '_H$' | sed 's/.*/EVENT(&)/'
  cat "$include"/usher/*.h | sed -n 's/^#define \(USHER_\([A-Z0-9_]*\)_INIT\).*/\1/p' | while read -r macro; do
    type=$(echo "$macro" | sed 's/_INIT$//' | tr 'A-Z' 'a-z')
    echo "INIT($type, $macro)"
  done
} >"$work/every.h"
same "every option and result structure with a struct_size to fill has an INIT" \
  "$(cat "$include"/usher/*.h | tr '\n' ' ' | sed 's/typedef struct/\n&/g' | grep -E '^typedef struct usher_[a-z0-9_]+ \{ *(/\*[^*]*\*+([^/*][^*]*\*+)*/ *)?size_t struct_size;' | sed 's/typedef struct \([a-z0-9_]*\) .*/\1/' | grep -vE '^usher_(event|api|hook_call|customer_request|spc_request|protection)$' | sort)" \
  "$(sed -n 's/^INIT(\(.*\),.*/\1/p' "$work/every.h" | sort)"
build() { # compiler, standard, language, program
  $1 -x "$3" -std="$2" -Wall -Wextra -pedantic -Wno-missing-field-initializers -Werror -I "$include" -I "$work" "$here/names.c" -x none "$library" -o "$4"
}
loaded_from=$(cd "$(dirname "$library")" && pwd)
for way in "${CC:-cc} c99 c" "${CXX:-c++} c++11 c++"; do
  # shellcheck disable=SC2086
  set -- $way
  claim "names.c builds as $2" build "$1" "$2" "$3" "$work/names-$2"
  if [ -x "$work/names-$2" ]; then
    if LD_LIBRARY_PATH=$loaded_from${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 20 "$work/names-$2" >"$work/told"; then :; fi
    sed "s/\$/ ($2)/" "$work/told"
    bad=$(grep -c '^not ok' "$work/told" || true)
    failed=$((failed + bad))
    grep -q '^ok - all names were asked' "$work/told" || not_ok "names-$2 ended before its end"
  fi
done
finish
