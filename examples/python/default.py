"""Plays an encrypted clip with a default delegate: a licence URL, and a header with the token. No session.

Usage:
    pip install libusher av
    python default.py CLIP LICENSE_URL CONTENT_TOKEN KEY_ID        (key id: 32 hex digits)
"""

import sys

import clip as screen

import usher


def main(clip: str, license_url: str, token: str, key_id: str) -> None:
    kid = bytes.fromhex(key_id)
    with usher.Context() as context, usher.Player(context) as player:
        delegate = usher.DefaultDelegate(context, license_url=license_url)
        delegate.set_http_header("nv-authorizations", token)  # for every licence request from now on
        with player.play(delegate=delegate) as playback:
            licence = playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([kid]))
            print(screen.play(clip, licence.clear_keys()[kid]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 5 else __doc__)
