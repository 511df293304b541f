"""Plays two encrypted streams at once, each with its own content token, key and SSM session.

Usage:
    pip install libusher av
    python multi_instance.py LICENSE_URL SSM_URL CLIP CONTENT_ID CONTENT_TOKEN KEY_ID \
        PREVIEW CONTENT_ID CONTENT_TOKEN KEY_ID        (key ids: 32 hex digits)
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import clip as screen

import usher


def main(license_url: str, ssm_url: str, *streams: str) -> None:
    with usher.Context() as context:
        delegate = usher.MultiInstanceDelegate(context, license_url=license_url, ssm_url=ssm_url)

        def play(clip: str, content_id: str, token: str, key_id: str) -> str:
            kid = bytes.fromhex(key_id)
            delegate.tokens[content_id] = token
            with (
                usher.Player(context) as player,
                player.play(delegate=delegate, content_id=content_id) as playback,
            ):  # the delegate has the token for this content id
                licence = playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([kid]))
                return screen.play(clip, licence.clear_keys()[kid])

        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(play, *streams[:4]), pool.submit(play, *streams[4:])]
            print(*(picture.result() for picture in both), sep="\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 11 else __doc__)
