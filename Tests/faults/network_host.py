"""A host that plays many items, as a child process that moves.py and chaos.py stop, move and kill. It runs on the near
side of the network.

The first line of its input is JSON: the URLs of the head-end, a content token for each playback, and options. Then it
reads one command per line. It writes each event as one line of JSON. After a lost session or a refused set-up it plays
the same item again, as a player does for a viewer who keeps watching.

Commands:
    moved       call usher_context_network_changed()
    enter PATH  move the main thread to this network namespace, then do the same as `moved`
    fork        fork a child that lives as long as this process, and has a copy of each of its descriptors
    slept MS    the machine seems to have slept for this time (see clocks.c)
    end         close the context and end
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
from typing import Any

import usher
from usher import EventType

CLONE_NEWNET = 0x4000_0000
AGAIN_S = 2.0
"""How long the host waits before it plays an item again."""


def now_ms() -> int:
    """Returns the time of the clock that this process and chaos.py share, in ms."""
    return time.monotonic_ns() // 1_000_000


class Host:
    def __init__(self, given: dict[str, Any]) -> None:
        self.tokens: list[str] = given["tokens"]
        self.context = usher.Context(proxy="", allow_insecure_http=True, **given["context"])
        self.context.add_observer(self._look)
        self.delegate = usher.SSPDelegate(
            self.context, license_url=given["license_url"], ssm_url=given["ssm_url"], **given.get("delegate", {})
        )
        self.players = [usher.Player(self.context) for _ in self.tokens]
        self.playbacks: dict[int, usher.Playback] = {}
        self.is_ending = False
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._again: dict[int, float] = {}

    def write(self, **line: Any) -> None:
        # One call of write(2): if the process is killed, chaos.py reads the whole line or nothing.
        with self._lock:
            os.write(1, (json.dumps({"at_ms": now_ms(), **line}) + "\n").encode())

    def _look(self, event: usher.Event) -> None:
        index = event.tag if isinstance(event.tag, int) else -1
        error = event.error
        is_over = event.type is EventType.SETUP_ERROR or (
            event.type is EventType.HEARTBEAT_ERROR and self._has_failed(index)
        )
        self.write(
            index=index,
            type=event.type.name,
            lateness_ms=event.lateness_ms,
            status=error.status.name if error else None,
            code=error.service_code if error else 0,
            orphan=event.orphan_possible,
            is_over=is_over,
        )
        if is_over and not self.is_ending:
            with self._changed:
                self._again[index] = time.monotonic() + AGAIN_S
                self._changed.notify()

    def _has_failed(self, index: int) -> bool:
        playback = self.playbacks.get(index)
        return playback is not None and playback.session_state is usher.SessionState.FAILED

    def play(self, index: int) -> None:
        self.playbacks[index] = self.players[index].play(self.tokens[index], delegate=self.delegate, tag=index)

    def play_again(self) -> None:
        """Plays the items again whose session was lost, each after its pause. Runs on a thread of its own."""
        while True:
            with self._changed:
                due = [index for index, at in self._again.items() if at <= time.monotonic()]
                for index in due:
                    del self._again[index]
                if not due:
                    left = min(self._again.values(), default=time.monotonic() + 3600) - time.monotonic()
                    self._changed.wait(max(0.01, left))
                    continue
            for index in due:
                if self.is_ending:
                    return
                self.play(index)


def main() -> None:
    given = json.loads(sys.stdin.readline())
    host = Host(given)
    threading.Thread(target=host.play_again, daemon=True).start()
    for index in range(len(host.tokens)):
        host.play(index)
        time.sleep(given["spread_s"] / len(host.tokens))
    host.write(type="PLAYING", index=-1)
    libc = ctypes.CDLL(None, use_errno=True)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "moved":
            host.context.network_changed()
        elif command == "enter":
            with open(words[0], "rb") as namespace:
                if libc.setns(namespace.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), f"setns {words[0]}")
            host.context.network_changed()
        elif command == "fork":
            if os.fork() == 0:
                libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
                signal.pause()
        elif command == "slept":
            libc.machine_slept(ctypes.c_longlong(int(words[0])))
        elif command == "end":
            break
    host.is_ending = True
    host.context.close()
    host.write(type="ENDED", index=-1)


if __name__ == "__main__":
    main()
