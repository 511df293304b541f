#!/bin/sh
# headers.sh [INCLUDE]: each header alone compiles as C99 and C++11 (usher.hpp and its parts: C++17 and C++20) without a
# warning, and includes no system headers except stddef.h and stdint.h.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
include=${1:-$here/../../include}
strict='-Wall -Wextra -pedantic -Wstrict-prototypes -Werror -fsyntax-only'
strict_cxx='-Wall -Wextra -pedantic -Werror -fsyntax-only'
twice() { printf '#include <usher/%s>\n#include <usher/%s>\ntypedef int something;\n' "$1" "$1"; }
c99() { twice "$1" | ${CC:-cc} -x c -std=c99 $strict -I "$include" -; }
cxx() { # COMPILER STANDARD HEADER FLAGS...
  compiler=$1 standard=$2 header=$3; shift 3
  twice "$header" | $compiler -x c++ -std="$standard" $strict_cxx "$@" -I "$include" -
}
clang_c99() { twice "$1" | clang -x c -std=c99 $strict -Wdocumentation -I "$include" -; }
for header in $(cd "$include/usher" && ls ./*.h | sed 's|^\./||'); do
  claim "$header alone is C99" c99 "$header"
  claim "$header alone is C++11" cxx "${CXX:-c++}" c++11 "$header"
done
for header in $(cd "$include/usher" && ls hpp/*.hpp); do
  claim "$header alone is C++17" cxx "${CXX:-c++}" c++17 "$header" -Wshadow
done
for compiler in ${CXX:-g++ clang++}; do
  command -v "$compiler" >/dev/null || continue
  for standard in c++17 c++20; do
    claim "usher.hpp alone is $standard to $compiler" cxx "$compiler" "$standard" usher.hpp -Wshadow
    claim "usher.hpp alone is $standard to $compiler, without exceptions" \
      cxx "$compiler" "$standard" usher.hpp -fno-exceptions
    claim "usher.hpp alone is $standard to $compiler, with USHER_NO_EXCEPTIONS" \
      cxx "$compiler" "$standard" usher.hpp -DUSHER_NO_EXCEPTIONS
  done
done
if command -v clang >/dev/null; then claim "usher.h is C99 to clang, its comments well formed" clang_c99 usher.h; fi
if command -v clang++ >/dev/null; then
  claim "usher.hpp's comments are well formed to clang++" cxx clang++ c++17 usher.hpp -Wdocumentation
fi
same "usher.h includes every header" \
  "$(cd "$include/usher" && ls ./*.h | sed 's|^\./||' | grep -v '^usher\.h$' | sort)" \
  "$(sed -n 's/^#include "\(.*\)"$/\1/p' "$include/usher/usher.h" | sort)"
same "usher.hpp includes every part" \
  "$(cd "$include/usher" && ls hpp/*.hpp)" \
  "$(sed -n 's/^#include "\(hpp\/.*\)"$/\1/p' "$include/usher/usher.hpp" | sort)"
same "of the system's headers only stddef.h and stdint.h" \
  "$(printf 'stddef.h\nstdint.h')" \
  "$(sed -n 's/^#include <\(.*\)>$/\1/p' "$include"/usher/*.h | sort -u)"
same "every function is marked with its release" "" \
  "$("$here/../../scripts/headers.py" --include "$include" since | grep -v ' [0-9][0-9]*\.[0-9][0-9]*$' || true)"
finish
