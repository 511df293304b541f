"""Measures the cost of calls and pumped callbacks in Python, as calls_usher.c does in C. Prints nanoseconds as a JSON
object."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import peer

import usher
from usher._c import ffi

options = peer.read()
calls = options.rounds * 1000


def per_call(function: Callable[[], object]) -> float:
    turns = range(calls)
    start = time.process_time_ns()
    for _ in turns:
        function()
    return (time.process_time_ns() - start) / calls


told = 0


def on_event(event: usher.Event) -> None:
    global told
    told += event.type is usher.EventType.KEPT_ALIVE


with usher.Context(clock="manual", callbacks="pumped") as context:
    licenses = f"{options.base}/licenses"
    delegate = usher.SSPDelegate(context, license_url=licenses, ssm_url=options.base, jitter_permille=usher.OFF)
    players = [usher.Player(context) for _ in range(options.sessions)]
    playbacks = [player.play("content.token", delegate=delegate) for player in players]
    context.settle(callbacks=2**31, timeout_ms=60_000)
    context.pump()
    found = {
        "nothing": per_call(lambda: None),
        "version": per_call(ffi.lib.usher_version),
        "state": per_call(lambda: playbacks[0].session_state),
    }
    context.add_observer(on_event)
    spent = ran = 0
    for _ in range(5):
        context.advance(60_000)
        context.settle(callbacks=2**31, timeout_ms=60_000)
        start = time.process_time_ns()
        ran += context.pump()
        spent += time.process_time_ns() - start
    if told < 5 * options.sessions:
        raise SystemExit(f"the observer received only {told} heartbeats")
    found["callback"] = spent / ran
    print(json.dumps(found))
    for playback in playbacks:
        playback.close(usher.CloseMode.LEAVE)
