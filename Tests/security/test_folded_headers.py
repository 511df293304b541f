"""A server sends a reply whose first header line begins with a blank, as if this line continued an earlier header
line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from stage.raw import RawServer
from usher.testing.doors import Proxy

REPLY = json.dumps({"sessionToken": "token-of-the-session", "heartbeat": 60}).encode()
HOST = """
import sys
import usher

with usher.Context(proxy=sys.argv[2], ca_file=sys.argv[3]) as context:
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


STATUS = b"HTTP/1.1 200 OK\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(REPLY)
USUAL = STATUS + b"X-Padding: 1\r\n" + LENGTH + REPLY


CA = trustme.CA()
Play = Callable[..., list[str]]


@pytest.fixture(params=["http", "https", "tunnel"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def play(kind: str, tmp_path: Path) -> Iterator[Play]:
    """Yields a function that starts a host and a server. The host makes six set-ups, and the server answers with the
    replies that the function gets. The function returns how the set-ups end. The process of the host overwrites all
    memory that it frees, so the process crashes if libcurl uses a header line after libcurl has freed it.

    In a tunnel, the proxy first replies to CONNECT. This reply has no header lines."""
    ca = tmp_path / "ca.pem"
    CA.cert_pem.write_to_path(str(ca))
    context = None if kind == "http" else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if context:
        CA.issue_cert("127.0.0.1").configure_cert(context)
    proxy = {"tunnel": Proxy, "folding": FoldingProxy}.get(kind, lambda: None)()
    with proxy or contextlib.nullcontext():

        def results(*replies: bytes) -> list[str]:
            with RawServer(*replies, tls=context) as server:
                host = subprocess.run(
                    [
                        sys.executable,
                        "-c",
                        HOST,
                        server.url,
                        proxy.address if proxy else "",
                        str(ca),
                    ],
                    env={**os.environ, "MALLOC_PERTURB_": "85"},
                    capture_output=True,
                    text=True,
                    timeout=50,
                    check=False,
                )
            assert host.returncode == 0, f"the host ended with {host.returncode}:\n{host.stdout}{host.stderr}"
            return str(host.stdout).split()

        yield results


@pytest.mark.parametrize(
    "before",
    [STATUS, STATUS.lower(), INTERIM + b"\r\n" + STATUS, INTERIM + b"\r\n" + STATUS.lower()],
    ids=["first", "lower-case", "interim", "interim-lower-case"],
)
@pytest.mark.parametrize("line", [b" folded", b"\tfolded: 1", b" a: b"], ids=["text", "tab", "field"])
def test_reply_whoseFirstHeaderLineIsFolded_isRefused_andHarmsNoMemoryOfTheHost(
    play: Play, before: bytes, line: bytes
) -> None:
    folded = before + line + b"\r\n" + LENGTH + REPLY
    assert play(USUAL, folded, USUAL, folded) == ["session", "TRANSPORT"] * 2 + ["TRANSPORT"] * 2


@pytest.mark.parametrize(
    "reply",
    [
        STATUS + b"\r\n " + REPLY,
        INTERIM + b"\r\n" + STATUS + b"\r\n\t" + REPLY,
        STATUS + b"X: " + b"a" * (16384 - 3) + b" b\r\n" + LENGTH + REPLY,
        STATUS + b"A: 1\r\n folded\r\n" + LENGTH + REPLY,
        INTERIM + b"Link: a\r\n\r\n" + STATUS + LENGTH + REPLY,
    ],
    ids=["no-headers", "interim-no-headers", "long-line", "folded-later", "interim"],
)
def test_reply_withABlankElsewhere_isRead(play: Play, reply: bytes) -> None:
    """The library reads a reply in which a blank begins a body, a part of a line, or a line that continues another
    one."""
    assert play(USUAL, reply, USUAL, reply) == ["session"] * 6


class FoldingProxy(Proxy):
    """A proxy whose first reply is a usual one. Its other replies have no status line at their beginning, and then a
    folded line."""

    def __init__(self) -> None:
        self.replies = iter([b"HTTP/1.1 200 OK\r\n\r\n"])
        super().__init__()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        writer.write(next(self.replies, b"X: y\r\n folded\r\nHTTP/1.1 200: OK\r\n\r\n"))
        await self._join(reader, writer, ("127.0.0.1", int(target.rpartition(":")[2])))


@pytest.mark.parametrize("kind", ["folding"], indirect=True)
def test_replyOfAProxy_whoseLinesAreFolded_isRefused_andHarmsNoMemoryOfTheHost(play: Play) -> None:
    assert play(USUAL) == ["session"] + ["TRANSPORT"] * 5
