"""A host that keeps many sessions alive in real time. test_late.py stops this host or makes its I/O thread late.

Reads one line of JSON (the head-end's URLs and the content tokens). Then each line of input is a command; the reply is
one line of JSON:

    play         starts every playback, and replies when all sessions have started
    license MS   requests a licence for the first playback, with this time limit
    late MS      makes the I/O thread late (late.c must be preloaded)
    lost N       waits until the library has reported N sessions as lost, and replies whether it has
    end          closes everything, and replies with all events and the status of the licence
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections import Counter
from typing import Any

import usher
from stage import CHALLENGE
from usher import EventType


def main() -> None:
    given = json.loads(sys.stdin.readline())
    events: list[usher.Event] = []
    started = threading.Semaphore(0)
    lost = threading.Semaphore(0)
    statuses: list[str] = []
    waiting: list[threading.Thread] = []

    def look(event: usher.Event) -> None:
        events.append(event)
        if event.type is EventType.SESSION_STARTED:
            started.release()
        elif event.type is EventType.HEARTBEAT_ERROR:
            lost.release()

    def request(playback: usher.Playback, timeout_ms: int) -> None:
        try:
            playback.get_license(usher.KeySystem.CLEARKEY, CHALLENGE, timeout_ms=timeout_ms)
            statuses.append("OK")
        except usher.UsherError as error:
            statuses.append(type(error).__name__)

    with usher.Context(proxy="", **given["context"]) as context:
        context.add_observer(look)
        delegate = usher.SSPDelegate(
            context,
            license_url=given["license_url"],
            ssm_url=given["ssm_url"],
            jitter_permille=usher.OFF,
            **given["delegate"],
        )
        playbacks: list[usher.Playback] = []
        for line in sys.stdin:
            command, *numbers = line.split()
            reply: dict[str, Any] = {}
            if command == "play":
                playbacks = [usher.Player(context).play(token, delegate=delegate) for token in given["tokens"]]
                reply["started"] = all(started.acquire(timeout=20) for _ in playbacks)
            elif command == "license":
                waiting.append(threading.Thread(target=request, args=(playbacks[0], int(numbers[0]))))
                waiting[-1].start()
            elif command == "late":
                ctypes.c_int.in_dll(ctypes.CDLL(None), "late_ms").value = int(numbers[0])
            elif command == "lost":
                reply["lost"] = all(lost.acquire(timeout=20) for _ in range(int(numbers[0])))
            elif command == "end":
                for thread in waiting:
                    thread.join(20)
                reply["license"] = statuses
                seen = list(events)
                reply["events"] = Counter(event.type.name for event in seen)
                errors = (str(event.error) for event in seen if event.error is not None)
                reply["errors"] = sorted(set(errors))[:5]
                reply["must_stop"] = sum(event.error is not None and event.error.must_stop for event in seen)
            print(json.dumps(reply), flush=True)
            if command == "end":
                break


if __name__ == "__main__":
    main()
