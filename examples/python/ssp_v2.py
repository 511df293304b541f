"""Plays an encrypted clip with an SSP V2 delegate: the licence request also opens the session.

Usage:
    pip install libusher av
    python ssp_v2.py CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID        (key id: 32 hex digits)
"""

import sys
import threading

import clip as screen

import usher


def main(clip: str, license_url: str, ssm_url: str, token: str, key_id: str) -> None:
    kid, stop = bytes.fromhex(key_id), threading.Event()

    def on_event(event: usher.Event) -> None:
        print(f"{event.time_ms / 1000:6.3f} s  {event.type.name} {event.error or ''}")
        if event.must_stop:
            stop.set()

    with usher.Context() as context, usher.Player(context) as player:
        context.add_observer(on_event)
        delegate = usher.SSPV2Delegate(context, license_url=license_url, ssm_url=ssm_url)
        playback = player.play(token, delegate=delegate)  # sends no request yet
        licence = playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([kid]))  # opens the session
        print(screen.play(clip, licence.clear_keys()[kid], stop))
        playback.close(usher.CloseMode.TEARDOWN)  # without this, V2 leaves the session to expire


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 6 else __doc__)
