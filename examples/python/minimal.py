"""One playback under a concurrent-stream session: session set-up, licence, heartbeats, teardown.

Usage:
    pip install libusher
    python minimal.py LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID        (key id: 32 hex digits)
"""

import sys
import threading

import usher


def main(license_url: str, ssm_url: str, token: str, key_id: str) -> int:
    stop = threading.Event()

    def on_event(event: usher.Event) -> None:
        print(f"{event.time_ms / 1000:6.3f} s  {event.type.name} {event.error or ''}")
        if event.must_stop:
            stop.set()

    with usher.Context() as context:
        context.add_observer(on_event)
        delegate = usher.SSPDelegate(context, license_url=license_url, ssm_url=ssm_url)
        with usher.Player(context) as player, player.play(token, delegate=delegate) as playback:
            challenge = usher.clear_key_request([bytes.fromhex(key_id)])
            try:
                licence = playback.get_license(
                    usher.KeySystem.CLEARKEY, challenge
                )  # waits for the session, then for the licence
            except usher.UsherError as error:
                words = error.explain()
                print(f"{words.summary} {words.advice} ({error})")
                return 1
            print(f"key id {key_id}: a licence of {len(licence.data)} bytes")
            stop.wait(timeout=3)  # decode here; the library sends heartbeats
    return 0  # the `with` blocks have closed the playback and torn its session down


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
