#!/bin/sh
# make-media.sh OUTDIR [--seconds N] [--key HEX32] [--kid HEX32]
#
# Makes a short test clip with ffmpeg (a moving picture and a tone; nothing is downloaded) and encrypts it with CENC,
# AES-CTR, as a progressive MP4, which Debian's ffmpeg can write. Also makes a second content with another key: a small
# preview picture. OUTDIR afterwards has:
#   clear.mp4           the clip, not encrypted
#   encrypted.mp4       the same packets, encrypted; `tenc` has the key id
#   preview-clear.mp4, preview.mp4   the same for the preview: at most 4 s, no sound
#   hls/film.m3u8       the clip as HLS with AES-128; the URI of the key has the key id
#   media.env           USHER_KID=... USHER_KEY=... and USHER_PREVIEW_... for shells
#   media.json          the same for programs, with content ids
# The default keys and key ids are fixed test values. --key and --kid set those of the clip; `random` makes new ones,
# also for the preview.
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
preview_key=ffeeddccbbaa99887766554433221100
preview_kid=13579bdf02468ace13579bdf02468ace
preview_seconds=$seconds
[ "0${seconds%%.*}" -lt 4 ] || preview_seconds=4
if [ "$key" = random ]; then key=$(random16); preview_key=$(random16); fi
if [ "$kid" = random ]; then kid=$(random16); preview_kid=$(random16); fi
key=$(printf '%s' "$key" | tr 'A-F' 'a-f')
kid=$(printf '%s' "$kid" | tr 'A-F' 'a-f')
for hex in "$key" "$kid"; do
  case $hex in *[!0-9a-f]*) echo "make-media.sh: not hexadecimal: $hex" >&2; exit 2 ;; esac
  [ ${#hex} -eq 32 ] || { echo "make-media.sh: 32 hexadecimal digits are needed: $hex" >&2; exit 2; }
done
command -v ffmpeg >/dev/null || { echo "make-media.sh: ffmpeg is not installed (Debian package: ffmpeg)" >&2; exit 1; }

mkdir -p "$out"
run_ffmpeg() { ffmpeg -hide_banner -loglevel error -nostdin -y "$@"; }
h264='-c:v libx264 -preset veryfast -threads 1 -pix_fmt yuv420p -g 25'
exact='-flags +bitexact -fflags +bitexact'
# shellcheck disable=SC2086
run_ffmpeg -f lavfi -i "testsrc2=size=320x180:rate=25:duration=$seconds" \
  -f lavfi -i "sine=frequency=440:duration=$seconds" \
  $h264 -c:a aac -b:a 64k $exact -movflags +faststart "$out/clear.mp4"
# shellcheck disable=SC2086
run_ffmpeg -f lavfi -i "testsrc=size=160x90:rate=25:duration=$preview_seconds" \
  $h264 $exact -movflags +faststart "$out/preview-clear.mp4"
encrypt() {
  # shellcheck disable=SC2086
  run_ffmpeg -i "$out/$1" -map 0 -c copy $exact \
    -encryption_scheme cenc-aes-ctr -encryption_key "$3" -encryption_kid "$4" "$out/$2"
}
encrypt clear.mp4 encrypted.mp4 "$key" "$kid"
encrypt preview-clear.mp4 preview.mp4 "$preview_key" "$preview_kid"

mkdir -p "$out/hls"
for byte in $(printf '%s' "$key" | sed 's/../& /g'); do
  # shellcheck disable=SC2059
  printf "\\$(printf '%03o' "0x$byte")"
done >"$out/hls/key"
printf 'https://keys.example/%s\n%s\n' "$kid" "$out/hls/key" >"$out/hls/key-info"
run_ffmpeg -i "$out/clear.mp4" -c copy -hls_time 1 -hls_list_size 0 -hls_key_info_file "$out/hls/key-info" \
  "$out/hls/film.m3u8"
rm "$out/hls/key" "$out/hls/key-info" # players must ask for the key

printf 'USHER_KID=%s\nUSHER_KEY=%s\nUSHER_PREVIEW_KID=%s\nUSHER_PREVIEW_KEY=%s\n' \
  "$kid" "$key" "$preview_kid" "$preview_key" >"$out/media.env"
cat > "$out/media.json" <<JSON
{
  "content_id": "clip",
  "clear": "clear.mp4",
  "encrypted": "encrypted.mp4",
  "scheme": "cenc",
  "seconds": $seconds,
  "kid": "$kid",
  "key": "$key",
  "preview": {
    "content_id": "preview",
    "clear": "preview-clear.mp4",
    "encrypted": "preview.mp4",
    "scheme": "cenc",
    "seconds": $preview_seconds,
    "kid": "$preview_kid",
    "key": "$preview_key"
  }
}
JSON
echo "$out: clear.mp4 and encrypted.mp4, $seconds s, key id $kid; preview.mp4, $preview_seconds s, key id $preview_kid"
