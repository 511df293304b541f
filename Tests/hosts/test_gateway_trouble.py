"""Tests `usher gateway` when the head-end is slow, sends garbage, does not reply or stops, and when the gateway, its
player or its viewer ends the playback."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hosts.conftest import Clip, Row
from hosts.damage import damaged
from hosts.gateway import HOST, Start, ask, key_url, vlc
from hosts.scene import PATIENCE_S, until, until_ended
from hosts.terminal import Terminal

from usher.testing.headend import Fault, HeadEnd

# ---- the head-end ----------------------------------------------------------------------------------------------------


def test_gatewaySlow_givesTheKeyLater(
    server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path, row: Row
) -> None:
    """The head-end takes two seconds for each of two replies; the player gets the key when both have come, and
    playlists at once."""
    server.faults.add("setup", Fault.delay(2000))
    server.faults.add("license", Fault.delay(2000))
    gateway = start(film)
    url = key_url(gateway.url())
    begin = time.monotonic()
    with http_get(url) as reply:
        asked = time.monotonic()
        assert ask(gateway.url()).status == 200
        assert time.monotonic() - asked < 1
        assert reply.makefile("rb").read().endswith(clips["progressive"].content.keys[0].key)
    assert time.monotonic() - begin >= 4
    row("trouble", HOST, "each reply takes two seconds", "the key comes four seconds later; playlists come at once")


@pytest.mark.quick
def test_gatewayPlayer_thatSendsNoMore_getsItsKey(
    server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path
) -> None:
    """After its request the player closes only its sending side of the connection, and the head-end takes a second for
    its reply to the set-up. The player gets the key."""
    server.faults.add("setup", Fault.delay(1000))
    with http_get(key_url(start(film).url())) as reply:
        reply.shutdown(socket.SHUT_WR)
        assert reply.makefile("rb").read().endswith(clips["progressive"].content.keys[0].key)


def http_get(url: str) -> socket.socket:
    """Sends a request, and returns its connection."""
    parts = urlsplit(url)
    client = socket.create_connection((str(parts.hostname), int(parts.port or 0)), PATIENCE_S)
    client.sendall(f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
    return client


GARBAGE = [
    *[("setup", fault) for fault in (Fault.html_page(), Fault.non_json(), Fault.status(503), Fault.drop())],
    *[
        ("license", fault)
        for fault in (Fault.html_page(), Fault.empty_body(), Fault.status(403), Fault.reply(200, body={}))
    ],
]


@pytest.mark.parametrize(("route", "fault"), GARBAGE, ids=[f"{route}-{fault.label}" for route, fault in GARBAGE])
def test_gatewayGarbage_isSaidInWords(
    server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path, row: Row, route: str, fault: Fault
) -> None:
    """The head-end sends an unusable reply; the player gets a message and no key, the slot is free, and the next
    request gets the key."""
    server.faults.add(route, fault, always=True)
    gateway = start(film)
    url = key_url(gateway.url())
    reply = ask(url)
    assert reply.status in (403, 502)
    assert len(reply.text) > 20
    assert reply.text.splitlines()[0] in gateway.errors
    until(lambda: not server.sessions.active(), "the slot is free")
    server.faults.clear()
    key = clips["progressive"].content.keys[0].key
    until(lambda: ask(url).body == key, "the next request gets the key")
    name = {"setup": "the set-up", "license": "the licence request"}[route]
    result = "the player gets the reason and no key; the next request gets the key"
    row("trouble", HOST, f"{name} gets: {fault.label}", result)


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["cut", "moov-of-200-MB", "lying-tenc"])
@pytest.mark.parametrize("name", ["cenc", "progressive"])
def test_gatewayFile_isDamaged(
    server: HeadEnd, start: Start, clips: dict[str, Clip], tmp_path: Path, row: Row, name: str, kind: str
) -> None:
    """The clip of the gateway is a damaged MP4 file. The gateway says why it cannot be played, and does not start; the
    head-end gets no request."""
    file = damaged(kind, clips[name], tmp_path)
    gateway = start(file, content_id=clips[name].content.content_id)
    assert gateway.wait() == 3
    assert f"{file}: the file is damaged: " in gateway.errors
    assert not gateway.out
    assert not server.journal.entries()
    row("trouble", HOST, f"a file that is damaged: {kind.replace('-', ' ')}", "says so, does not start; exit code 3")


def test_gatewayDeath_stopsKeys(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """The head-end stops; when the lease of the session has ended, requests for keys and segments get 410 with the
    reason."""
    gateway = start(film, quit_timeout=1)
    url = key_url(gateway.url())
    assert ask(url).status == 200
    server.stop()
    until(lambda: ask(url).status == 410, "keys stop")
    reply = ask(url.replace("/1/key", "/2/film0.ts"))
    assert reply.status == 410
    assert len(reply.text) > 20
    assert reply.text.splitlines()[0] in gateway.errors
    row("trouble", HOST, "the head-end dies", "keys and segments stop when the session must have expired: 410")


def test_gatewayDeath_endsThePlayer(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """The head-end stops while the gateway runs ffmpeg. When the lease of the session has ended, the gateway ends
    ffmpeg, says why, and exits with code 4."""
    command = ["ffmpeg", "-v", "error", "-re", "-stream_loop", "-1", "-i", "{clip}", "-f", "null", "-"]
    gateway = start(film, "--", *command, quit_timeout=1)
    until(lambda: "heartbeat" in server.journal.routes(), "the session is kept alive")
    player = gateway.child()
    server.stop()
    assert gateway.wait() == 4
    assert len(gateway.errors) > 20
    assert not Path(f"/proc/{player}").exists()
    words = "ends the player when the session must have expired, says why; exit code 4"
    row("trouble", f"{HOST} with PLAYER", "the head-end dies", words)


@pytest.mark.parametrize("limit_s", [1, 2])
def test_gatewayTeardown_isBounded(server: HeadEnd, start: Start, film: Path, row: Row, limit_s: int) -> None:
    """The head-end does not answer the teardown; the gateway ends at most one second after --quit-timeout, and says
    so."""
    gateway = start(film, quit_timeout=limit_s)
    assert ask(key_url(gateway.url())).status == 200
    server.faults.add("teardown", Fault.stall(), always=True)
    begin = time.monotonic()
    assert gateway.stop() == 0
    assert time.monotonic() - begin < limit_s + 1
    assert "did not confirm the end of the stream" in gateway.errors
    row("trouble", HOST, "quit, and no reply to the teardown", "ends at --quit-timeout, prints a warning")


# ---- ends ------------------------------------------------------------------------------------------------------------

NOTHING = "nothing: the gateway tears the session down at once"
READS = 'ffmpeg -v error -i "$0" -frames:v 1 -f null - </dev/null; echo ready >&2; while :; do sleep 0.05; done'
"""A player, as a shell script: it plays one picture, and then continues to run."""


GUARDIAN = "nothing: the guardian tears the session down"


def test_gatewayDies_slotIsFree(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """SIGKILL ends the gateway; its guardian tears the session down."""
    gateway = start(film)
    assert ask(key_url(gateway.url())).status == 200
    gateway.process.kill()
    until_ended(server)
    row("ends", HOST, "SIGKILL", GUARDIAN)


def test_gatewayDies_playerEnds(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """SIGKILL ends a gateway that runs a player; the player gets SIGTERM, and the guardian of the gateway
    tears the session down."""
    gateway = start(film, "--", "sh", "-c", f"trap 'echo ended >&2; exit 0' TERM; {READS}", "{clip}")
    until(lambda: "ready" in gateway.errors, "the player has the key")
    assert server.sessions.active()
    gateway.process.kill()
    until(lambda: "ended" in gateway.errors, "the player ends")
    until_ended(server)
    row("ends", f"{HOST} with PLAYER", "SIGKILL to the gateway", f"{GUARDIAN}; the player ends")


def test_gatewayPlayerDies_slotIsFree(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """SIGKILL ends the player that the gateway runs; the slot is free at once."""
    gateway = start(film, "--", "sh", "-c", READS, "{clip}")
    until(lambda: "ready" in gateway.errors, "the player has the key")
    assert server.sessions.active()
    begin = time.monotonic()
    os.kill(gateway.child(), signal.SIGKILL)
    assert gateway.wait() == 128 + signal.SIGKILL
    assert time.monotonic() - begin < 2
    until_ended(server)
    row("ends", f"{HOST} with PLAYER", "SIGKILL to the player", NOTHING)


def test_gatewayPlayerGoes_idleEndsTheSession(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """The player closes its connections; the gateway tears the session down after the time of --idle."""
    gateway = start(film, idle=2)
    parts = urlsplit(key_url(gateway.url()))
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_S)
    connection.request("GET", parts.path)
    assert connection.getresponse().read()
    begin = time.monotonic()
    connection.close()
    until_ended(server)
    assert 1.9 < time.monotonic() - begin < 4
    row("ends", HOST, "the player closes its connections", "the session, for the time of --idle; then nothing")


@pytest.mark.parametrize("runs_player", [False, True])
def test_gatewayCtrlC_tearsDown(server: HeadEnd, start: Start, film: Path, row: Row, runs_player: bool) -> None:
    """The viewer presses Ctrl-C; the gateway and its player end, and the slot is free at once."""
    player = ["--", "sh", "-c", f"trap 'exit 7' INT; {READS}", "{clip}"]
    with Terminal() as terminal:
        gateway = start(film, *(player if runs_player else []), terminal=terminal.inner)
        if runs_player:
            until(lambda: "ready" in gateway.errors, "the player has the key")
        else:
            assert ask(key_url(gateway.url())).status == 200
        assert server.sessions.active()
        begin = time.monotonic()
        os.write(terminal.outer, b"\x03")
        assert gateway.wait() == (7 if runs_player else 0)
        assert time.monotonic() - begin < 2
    until_ended(server)
    row("ends", f"{HOST} with PLAYER" if runs_player else HOST, "Ctrl-C in a terminal", NOTHING)


def test_gatewayVlcQuits_slotIsFree(server: HeadEnd, start: Start, film: Path, tmp_path: Path, row: Row) -> None:
    """The viewer quits VLC, which the gateway runs; the slot is free at once."""
    control, folder = tmp_path / "vlc.sock", tmp_path / "pictures"
    command = [word for word in vlc(folder) if word not in ("-I", "dummy")]
    gateway = start(film, "--", *command, "-I", "oldrc", "--rc-fake-tty", f"--rc-unix={control}", "--loop")
    until(lambda: list(folder.glob("*.png")), "VLC shows pictures")
    assert server.sessions.active()
    begin = time.monotonic()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(control))
        client.sendall(b"quit\n")
        assert gateway.wait() == 0
    assert time.monotonic() - begin < 3
    until_ended(server)
    row("ends", f"{HOST}, VLC", "quit", NOTHING)
