#!/bin/sh
# shipped.sh LIBUSHER: the library that is installed is small, needs few other libraries, is hardened, and runs on older
# systems.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tell.sh"
library=$1
most_bytes=680000
glibc_floor=2.34 # the newest GLIBC_ version that its functions may need
relocations=1000 # bytes of its relative relocations; glibc reads the packed form since 2.36, older than libcurl 7.87
dynamic=$(readelf -dW "$library")
segments=$(readelf -lW "$library")
tag() { printf '%s\n' "$dynamic" | sed -n "s/.*($1).*\[\(.*\)\].*/\1/p"; }
has() { printf '%s\n' "$2" | grep -Eq "$1"; }

size=$(stat -Lc %s "$library")
if [ "$size" -le $most_bytes ]; then ok "$size bytes: not more than $most_bytes"
else not_ok "$size bytes: more than $most_bytes"; fi
same "stripped" "" "$(readelf -SW "$library" | grep -oE '\.(symtab|debug_[a-z]+) ' || true)"
unwind=$(readelf -SW "$library" | sed 's/\[ *//' | awk '$2 == ".eh_frame" { print $6 }')
claim "no tables for unwinding in the library" [ $((0x${unwind:-0})) -le 256 ]
claim "debuggers find these tables in the file with the debug information" \
  has ' \.debug_frame ' "$(readelf -SW "$(readlink -f "$library" | sed 's/\.0$//').debug")"
allowed='libcurl\.so\.4|libjson-c\.so\.5|libc\.so\.6|libm\.so\.6|ld-linux[-a-z0-9_]*\.so\.[12]'
same "needs only curl, json-c and the C library" "" "$(tag NEEDED | grep -vE "^($allowed)\$" || true)"
same "its soname" libusher.so.0 "$(tag SONAME)"
same "no RPATH, no RUNPATH" "" "$(tag 'RPATH\|RUNPATH')"
claim "all symbols bound at loading (BIND_NOW)" has 'BIND_NOW|Flags:.* NOW' "$dynamic"
claim "read-only after relocation (RELRO)" has '^ *GNU_RELRO ' "$segments"
claim "stays mapped after dlclose (NODELETE)" has 'Flags:.*NODELETE' "$dynamic"
claim "stack buffers guarded (stack protector)" has ' __stack_chk_fail(@|$)' "$(nm -D --undefined-only "$library")"
same "no fortified function is called" "" \
  "$(nm -D --undefined-only "$library" | grep -oE ' __[a-z_]+_chk(@|$)' | grep -v stack_chk || true)"
same "no CET mark" "" "$(readelf -nW "$library" | grep -oE 'IBT|SHSTK' || true)"
claim "stack not executable" has '^ *GNU_STACK .* RW +0' "$segments"
same "no segment both writable and executable" "" "$(printf '%s\n' "$segments" | grep -E '^ *LOAD .* RWE ' || true)"
# The section-to-segment table has a line for each segment, in the order of the program headers above it.
executable=$(printf '%s\n' "$segments" | awk '/^  [A-Z]/ && / 0x/ { if (/ R E /) print "^ *0*" n + 0 " "; n++ }')
inside=$(printf '%s\n' "$segments" | sed -n '/Segment Sections/,$p' | grep -E "${executable:-none}" || true)
same "constants not executable" "" "$(printf '%s\n' "$inside" | grep -o '\.rodata\|\.eh_frame' || true)"
same "no text relocation" "" "$(printf '%s\n' "$dynamic" | grep TEXTREL || true)"
same "no path of the machine it was built on" "" \
  "$(strings -a "$library" | grep -F -e "$(cd "$here/../.." && pwd)/" -e "${HOME:-/nowhere}/" || true)"
needed=$(nm -D --undefined-only "$library" | sed -n 's/.*@\(GLIBC_[0-9.]*\).*/\1/p' | sort -uV)
newest=$(printf '%s\n' "$needed" | tail -n 1 | sed 's/GLIBC_//')
what="needs $(echo "$needed" | tr '\n' ' ')of glibc"
if [ "$(printf '%s\n' "$newest" $glibc_floor | sort -V | tail -n 1)" = $glibc_floor ]; then
  ok "$what: not newer than $glibc_floor"
else
  not_ok "$what: newer than $glibc_floor"
  nm -D --undefined-only "$library" | grep "@GLIBC_$newest" | sed 's/^/    /'
fi
packed=$(readelf -SW "$library" | sed 's/\[ *//' | awk '$2 == ".relr.dyn" { print $6 }')
claim "relative relocations are packed" [ $((0x${packed:-ffff})) -le $relocations ]
# The library starts one program, the guardian, with posix_spawn().
changes='posix_spawnp|vfork|clone|signal|sigaction|setlocale|setenv|putenv|chdir|umask|exit|_exit|system|popen|fork|execve?'
same "calls nothing that changes signals, locale or environment, ends the process or starts another" "" \
  "$(nm -D --undefined-only "$library" | grep -oE " ($changes)(@.*)?\$" || true)"
finish
