"""Holds many playbacks in one Python process on the real clock, as held_usher.c does in C, and prints one line of JSON.

The process watches the pump's file descriptor, as an event loop does, or pumps at fixed intervals (--every).
"""

from __future__ import annotations

import argparse
import gc
import json
import select
import time
from collections import Counter

import usher

parser = argparse.ArgumentParser()
parser.add_argument("--base", required=True)
parser.add_argument("--sessions", type=int, required=True)
parser.add_argument(
    "--spread",
    type=float,
    required=True,
    help="seconds over which the set-ups are spread",
)
parser.add_argument(
    "--seconds",
    type=float,
    required=True,
    help="how long the run lasts after the set-ups",
)
parser.add_argument(
    "--every",
    type=int,
    default=0,
    help="pump at intervals of so many ms; 0: when callbacks are due",
)
parser.add_argument("--slack", type=int, default=0, help="the context's timer_slack_ms")
options = parser.parse_args()

late: Counter[int] = Counter()
failed: list[str] = []


def on_event(event: usher.Event) -> None:
    if event.type is usher.EventType.KEPT_ALIVE:
        late[event.lateness_ms] += 1
    elif event.error is not None:
        failed.append(str(event.error))


with usher.Context(callbacks="pumped", timer_slack_ms=options.slack) as context:
    delegate = usher.SSPDelegate(
        context,
        license_url=f"{options.base}/licenses",
        ssm_url=options.base,
        jitter_permille=usher.OFF,
    )
    context.add_observer(on_event)
    watched = select.epoll()
    watched.register(context.pump_fd, select.EPOLLIN)

    def pump_until(moment: float) -> None:
        while (left := moment - time.monotonic()) > 0:
            if options.every:
                time.sleep(min(left, options.every / 1000))
                context.pump()
            elif watched.poll(left):
                context.pump()

    players = [usher.Player(context) for _ in range(options.sessions)]
    start = time.monotonic()
    for number, player in enumerate(players):
        pump_until(start + options.spread * number / options.sessions)
        player.play("content.token", delegate=delegate)
    pump_until(start + options.spread + 1)
    gc.collect()
    gc.freeze()
    late.clear()
    cpu, wall = time.process_time_ns(), time.monotonic_ns()
    pump_until(time.monotonic() + options.seconds)
    cpu, wall = time.process_time_ns() - cpu, time.monotonic_ns() - wall
    metrics = context.metrics()
    watched.close()
    print(
        json.dumps(
            {
                "operations": late.total(),
                "sessions": options.sessions,
                "active": metrics.sessions_held,
                "errors": failed[:3],
                "cpu_ns": cpu,
                "wall_ns": wall,
                "late_ms": late,
            }
        )
    )
    for player in players:
        player.stop(usher.CloseMode.LEAVE)
