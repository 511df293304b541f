"""A server sends a reply whose first header line begins with a blank, as if this line continued an earlier header
line."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from raw import RawServer

REPLY = json.dumps({"sessionToken": "token-of-the-session", "heartbeat": 60}).encode()
HOST = """
import sys
import usher

with usher.Context(proxy="") as context:
    delegate = usher.SSPDelegate(context, license_url=sys.argv[1], ssm_url=sys.argv[1])
    player = usher.Player(context)
    for _ in range(6):
        playback = player.play("content-token", delegate=delegate)
        try:
            playback.wait_session()
            print("session", flush=True)
        except usher.UsherError as error:
            print(error.status.name, flush=True)
        playback.close(usher.CloseMode.LEAVE)
        playback.wait_closed()
"""


@pytest.mark.parametrize("first", [b" folded", b"\tfolded: 1", b" a: b"], ids=["text", "tab", "field"])
def test_reply_whoseFirstHeaderLineIsFolded_harmsNoMemoryOfTheHost(first: bytes) -> None:
    """The host process overwrites all memory that it frees. So it would crash if libcurl used header lines after they
    are freed; it does not crash."""
    usual = b"HTTP/1.1 200 OK\r\nX-Padding: 1\r\nContent-Length: %d\r\n\r\n" % len(REPLY) + REPLY
    folded = b"HTTP/1.1 200 OK\r\n" + first + b"\r\nContent-Length: %d\r\n\r\n" % len(REPLY) + REPLY
    with RawServer(usual, folded, usual, folded) as server:
        host = subprocess.run(
            [sys.executable, "-c", HOST, server.url],
            env={**os.environ, "MALLOC_PERTURB_": "85"},
            capture_output=True,
            text=True,
            timeout=50,
        )
    assert host.returncode == 0, f"the host ended with {host.returncode}:\n{host.stdout}{host.stderr}"
    assert host.stdout.count("\n") == 6
    assert "session" in host.stdout
