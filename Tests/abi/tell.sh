# The shell tests source this file. Each claim is one line, "ok - ..." or "not ok - ..."; scripts/test.py counts them.
# shellcheck shell=sh
failed=0
ok() { echo "ok - $*"; }
not_ok() { echo "not ok - $*"; failed=$((failed + 1)); }
# claim WHAT COMMAND...: runs the command, and shows its output if it fails.
claim() {
  what=$1; shift
  if output=$("$@" 2>&1); then ok "$what"
  else not_ok "$what"; printf '%s\n' "$output" | sed 's/^/    /' | head -n 30; fi
}
# same WHAT WANTED FOUND: claims that both texts are equal.
same() {
  if [ "$2" = "$3" ]; then ok "$1"
  else
    not_ok "$1"
    printf '    wanted: %s\n    found:  %s\n' "$(echo "$2" | tr '\n' ' ')" "$(echo "$3" | tr '\n' ' ')"
  fi
}
finish() { [ "$failed" = 0 ]; exit; }
