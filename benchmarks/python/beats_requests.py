"""Sends heartbeats with the Python package `requests`: one thread for each request in flight, and each thread with its
own connection."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import peer
import requests

options = peer.read()
local = threading.local()


def post(route: str, token: str) -> str:
    if not hasattr(local, "session"):
        local.session = requests.Session()
        local.session.trust_env = False
        local.session.verify = options.ca or True
    headers = peer.headers(token)
    reply = local.session.post(f"{options.base}/sessions/{route}", data=b"{}", headers=headers, timeout=10)
    reply.raise_for_status()
    found: str = reply.json()["sessionToken"]
    return found


def beat(index: int) -> None:
    tokens[index] = post("heartbeat", tokens[index])


tokens = [post("setup", "content.token") for _ in range(options.sessions)]
watch = peer.Stopwatch()
due = time.monotonic()
with ThreadPoolExecutor(options.in_flight) as pool:
    for turn in range(-options.warm_up, options.rounds):
        if turn == 0:
            watch.start()
        if options.in_flight == 1:
            for index in range(options.sessions):
                if options.pace:
                    due += 1 / options.pace
                    time.sleep(max(0.0, due - time.monotonic()))
                beat(index)
        else:
            list(pool.map(beat, range(options.sessions)))
    watch.print(options.rounds * options.sessions)
