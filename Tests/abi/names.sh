#!/bin/sh
# names.sh LIBUSHER [INCLUDE]: builds names.c with every status, origin, operation, event and INIT macro of the headers,
# as C99 and as C++11, and runs it against the library.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
library=$1 include=${2:-$here/../../include}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers() { "$here/../../scripts/headers.py" --include "$include" "$@"; }
list() { headers constants "$1" "$2"; }
{
  list USHER_OK error.h | sed 's/.*/STATUS(&)/'
  list USHER_E_ error.h | sed 's/.*/STATUS(&)/'
  list USHER_ORIGIN_ error.h | sed 's/.*/ORIGIN(&)/'
  list USHER_OPERATION_ error.h | sed 's/.*/OPERATION(&)/'
  list USHER_EVENT_ event.h | sed 's/.*/EVENT(&)/'
  headers inits | sed 's/\(.*\) \(.*\)/INIT(\1, \2)/'
} >"$work/every.h"
same "every option and result structure with a struct_size to fill has an INIT" \
  "$(headers sized | sort)" \
  "$(sed -n 's/^INIT(\(.*\),.*/\1/p' "$work/every.h" | sort)"
build() { # compiler, standard, language, program
  $1 -x "$3" -std="$2" -Wall -Wextra -pedantic -Wno-missing-field-initializers -Werror -I "$include" -I "$work" \
    "$here/names.c" -x none "$library" -o "$4"
}
loaded_from=$(cd "$(dirname "$library")" && pwd)
for way in "${CC:-cc} c99 c" "${CXX:-c++} c++11 c++"; do
  # shellcheck disable=SC2086
  set -- $way
  claim "names.c builds as $2" build "$1" "$2" "$3" "$work/names-$2"
  if [ -x "$work/names-$2" ]; then
    path=$loaded_from${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    LD_LIBRARY_PATH=$path timeout 20 "$work/names-$2" >"$work/told" || true
    sed "s/\$/ ($2)/" "$work/told"
    bad=$(grep -c '^not ok' "$work/told" || true)
    failed=$((failed + bad))
    grep -q '^ok - all names were asked' "$work/told" || not_ok "names-$2 stopped early"
  fi
done
finish
