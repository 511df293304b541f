#!/bin/sh
# make-media.sh OUTDIR [--seconds N] [--key HEX32] [--kid HEX32]
#
# Makes a short test clip with ffmpeg (moving picture and a tone, no download) and encrypts it: CENC, AES-CTR, progressive MP4, which is what
# Debian's ffmpeg writes well. In OUTDIR afterwards:
#   clear.mp4       the clip as it was encoded
#   encrypted.mp4   the same packets, encrypted; its key id is in `tenc`
#   media.env       USHER_KID=... USHER_KEY=... for shells          media.json   the same for programs
# Key and key id are test values of our own; give --key and --kid for others, or `random` for fresh ones.
set -eu

usage() { sed -n '2p' "$0" | sed 's/^# /usage: /' >&2; exit 2; }
random16() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

[ $# -ge 1 ] || usage
case $1 in -*) usage ;; esac
out=$1; shift
seconds=12
key=00112233445566778899aabbccddeeff
kid=0fedcba9876543210123456789abcdef
while [ $# -ge 2 ]; do
  case $1 in
    --seconds) seconds=$2 ;;
    --key) key=$2 ;;
    --kid) kid=$2 ;;
    *) usage ;;
  esac
  shift 2
done
[ $# -eq 0 ] || usage
[ "$key" != random ] || key=$(random16)
[ "$kid" != random ] || kid=$(random16)
key=$(printf '%s' "$key" | tr 'A-F' 'a-f')
kid=$(printf '%s' "$kid" | tr 'A-F' 'a-f')
for hex in "$key" "$kid"; do
  case $hex in *[!0-9a-f]*) echo "make-media.sh: not hexadecimal: $hex" >&2; exit 2 ;; esac
  [ ${#hex} -eq 32 ] || { echo "make-media.sh: 32 hex digits wanted: $hex" >&2; exit 2; }
done
command -v ffmpeg >/dev/null || { echo "make-media.sh: ffmpeg is not installed (Debian package: ffmpeg)" >&2; exit 1; }

mkdir -p "$out"
run_ffmpeg() { ffmpeg -hide_banner -loglevel error -nostdin -y "$@"; }
run_ffmpeg -f lavfi -i "testsrc2=size=320x180:rate=25:duration=$seconds" -f lavfi -i "sine=frequency=440:duration=$seconds" \
  -c:v libx264 -preset veryfast -threads 1 -pix_fmt yuv420p -g 25 -c:a aac -b:a 64k -flags +bitexact -fflags +bitexact -movflags +faststart "$out/clear.mp4"
run_ffmpeg -i "$out/clear.mp4" -map 0 -c copy -flags +bitexact -fflags +bitexact \
  -encryption_scheme cenc-aes-ctr -encryption_key "$key" -encryption_kid "$kid" "$out/encrypted.mp4"

printf 'USHER_KID=%s\nUSHER_KEY=%s\n' "$kid" "$key" > "$out/media.env"
cat > "$out/media.json" <<JSON
{
  "clear": "clear.mp4",
  "encrypted": "encrypted.mp4",
  "scheme": "cenc",
  "seconds": $seconds,
  "kid": "$kid",
  "key": "$key"
}
JSON
echo "$out: clear.mp4 and encrypted.mp4, $seconds s, key id $kid"
