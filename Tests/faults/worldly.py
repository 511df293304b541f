"""A program that plays the cells that need a world (world.py), and writes each outcome to OUT as a line of JSON.

To start it, run the command of ``world.enter()`` followed by ``python worldly.py OUT``. The library of clocks.c
must be preloaded.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from expected import OVER_HTTP2  # noqa: E402
from operations import COLUMNS, play_in_scene  # noqa: E402
from rows import DAY_S, WORLDLY  # noqa: E402
from world import FAR, NAME, World  # noqa: E402

import usher  # noqa: E402
from usher.testing.headend import HeadEnd  # noqa: E402
from usher.testing.headend.fixtures import Authority  # noqa: E402

BEATS = 8


def beats_through_jumps(world: World) -> dict[str, Any]:
    """Plays a session in real time. At each event the observer sets the wall clock to tomorrow, now or yesterday, in
    turn. Returns the types of the events, and how late the heartbeats were."""
    told: list[usher.Event] = []
    done = threading.Event()

    def look(event: usher.Event) -> None:
        told.append(event)
        world.wall_clock(DAY_S * (1, 0, -1)[len(told) % 3])
        if event.error is not None or sum(e.type is usher.EventType.KEPT_ALIVE for e in told) == BEATS:
            done.set()

    with HeadEnd(clock="system", period_s=0.2, grace=50) as headend, usher.Context(proxy="") as context:
        context.add_observer(look)
        delegate = usher.SSPDelegate(
            context,
            license_url=headend.license_url("clearkey"),
            ssm_url=headend.ssm_url,
            period_min_ms=200,
            jitter_permille=usher.OFF,
        )
        playback = usher.Player(context).play(headend.content_token(), delegate=delegate)
        done.wait(30)
        seen = list(told)
        playback.close()
        playback.wait_closed()
        world.wall_clock(0)
        return {
            "types": [e.type.name for e in seen],
            "lateness_ms": max(e.lateness_ms for e in seen),
            "held": len(headend.sessions.active()),
        }


def main(out: str) -> None:
    world, authority = World(), Authority(NAME, FAR)
    with open(out, "w", encoding="utf-8", buffering=1) as lines:
        for fault, http2, column in product(WORLDLY, (False, True), COLUMNS):
            asked, start = world.name_server.asked, time.monotonic()
            try:
                cell = {"outcome": str(play_in_scene(authority, fault, column, world, http2))}
            except Exception as error:
                cell = {"failure": f"{type(error).__name__}: {error}"}
            cell["seconds"] = time.monotonic() - start
            cell["names_asked"] = world.name_server.asked - asked
            print(
                json.dumps({"fault": fault.key + (OVER_HTTP2 if http2 else ""), "column": column.name, **cell}),
                file=lines,
            )
        print(json.dumps({"fault": "jumps", "column": "", **beats_through_jumps(world)}), file=lines)


if __name__ == "__main__":
    main(sys.argv[1])
