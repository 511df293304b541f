"""A host that plays an item under a guardian, and then waits until it is killed.

    python -m sequences.killed LICENSE_URL SSM_URL TOKEN

Prints the lines of its recording as JSON, then the word "plays".
"""

from __future__ import annotations

import json
import signal
import sys

import usher
from pytest_usher.stage import KID

from .messages import Recording


def main(license_url: str, ssm_url: str, token: str) -> None:
    trace: list[str] = []
    context = usher.Context(
        clock="manual",
        guardian="required",
        log=lambda level, line: trace.append(line) if level == usher.LogLevel.TRACE else None,
        log_level=usher.LogLevel.TRACE,
        proxy="",
        trace_context=True,
    )
    delegate = usher.SSPDelegate(context, license_url=license_url, ssm_url=ssm_url)
    player = usher.Player(context)
    recording = Recording(trace, context.settle)
    playback = recording.call("usher_player_play", lambda: player.play(token, delegate=delegate), "content token")
    if playback is None:
        sys.exit("usher_player_play() failed")
    payload = usher.clear_key_request([KID])
    recording.call(
        "usher_playback_get_license",
        lambda: playback.get_license(usher.KeySystem.CLEARKEY, payload),
        "payload",
        "licence",
    )
    for line in recording.take():
        print(json.dumps(line))
    print("plays", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
