"""Tests which clients get keys, segments and licences from `usher gateway`."""

from __future__ import annotations

import base64
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hosts.conftest import Clip, Row
from hosts.gateway import HOST, Start, ask, key_url
from hosts.mpv import QUIET
from hosts.scene import PATIENCE_S, until, until_ended

from usher.testing.headend import Fault, HeadEnd


def request_of(*key_ids: bytes) -> bytes:
    kids = [base64.urlsafe_b64encode(key_id).decode().rstrip("=") for key_id in key_ids]
    return json.dumps({"kids": kids, "type": "temporary"}).encode()


# ---- the session -----------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_gatewaySession_beginsAtTheFirstKey(server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path) -> None:
    """A player requests a key; the gateway sets up the session only then, and sends the right key."""
    gateway = start(film)
    url = key_url(gateway.url())
    assert not server.journal.entries()
    reply = ask(url)
    assert (reply.status, reply.body) == (200, clips["progressive"].content.keys[0].key)
    assert reply.headers["Cache-Control"] == "no-store"
    assert len(server.sessions.active()) == 1
    assert ask(url).body == reply.body
    assert server.journal.routes().count("license") == 1
    assert gateway.stop() == 0
    until_ended(server)


@pytest.mark.quick
def test_gatewayPath_isGuessed(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """A client requests a path that is guessed, too short, too long, or of a playback that has ended; the gateway
    replies 404 without a key."""
    gateway = start(film, idle=1)
    good = key_url(gateway.url())
    secret = urlsplit(good).path.split("/")[1]
    assert len(secret) == 48
    other = secret[:-1] + ("0" if secret[-1] != "0" else "1")
    for guess in (other, secret[:-1], secret + "0", "", secret.upper() + "x", "%2e%2e"):
        reply = ask(good.replace(secret, guess))
        assert reply.status == 404, guess
        assert b"playback" in reply.body
    base = good[: good.index(secret)] + secret
    for path in ("", "/", "/0", "/99/key", "/-1/x", "/18446744073709551615/key", "/0x1/key"):
        assert ask(base + path).status == 404, path
    assert not server.journal.entries()
    assert ask(good).status == 200
    until_ended(server)
    reply = ask(good)
    assert reply.status == 404
    assert len(reply.body) != 16
    assert len(server.sessions.all()) == 1
    row("trouble", HOST, "a path is guessed, or used after the playback", "404, no key, no session")


def test_gatewayPlayer_isThere(server: HeadEnd, start: Start, film: Path) -> None:
    """The player keeps its connection for longer than --idle; the session continues, and ends when the connection
    closes."""
    gateway = start(film, idle=1)
    parts = urlsplit(key_url(gateway.url()))
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_S)
    connection.request("GET", parts.path)
    assert connection.getresponse().read()
    beats = server.journal.routes().count("heartbeat")
    until(lambda: server.journal.routes().count("heartbeat") >= beats + 2, "the session outlives --idle")
    assert server.sessions.active()
    connection.close()
    until_ended(server)
    assert "player is gone" in gateway.errors


def test_gatewayPause_keepsTheSession(server: HeadEnd, start: Start, film: Path) -> None:
    """The viewer pauses a player that the gateway runs for longer than --idle; the session continues."""
    gateway = start(film, "--", "mpv", *QUIET, "--vo=null", "--pause", idle=1)
    until(lambda: server.journal.routes().count("heartbeat") >= 2, "the session outlives --idle")
    assert server.sessions.active()
    gateway.process.terminate()
    gateway.wait()
    until_ended(server)


def test_gatewayLimit_isSaidInWords(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """The account has no free slot; the gateway refuses the key with a message, and sends the key when a slot is free
    again."""
    other = server.sessions.set_up(account="account-1", device="other", content_ids=("other",), limit=1)
    gateway = start(film)
    url = key_url(gateway.url())
    reply = ask(url)
    assert reply.status == 403
    assert "1007" in reply.text
    assert "1007" in gateway.errors
    assert ask(url).status == 403
    assert server.journal.routes().count("setup") == 1, "a player that asks again at once must not flood the server"
    assert other
    server.kill_account("account-1")
    until(lambda: ask(url).status == 200, "the key comes when the slot is free")
    row("trouble", HOST, "the limit is reached", "403 with the reason, which the gateway also prints; no key")


@pytest.mark.quick
def test_gatewaySlotWait_givesTheKeyLater(
    server: HeadEnd, start: Start, clips: dict[str, Clip], film: Path, row: Row
) -> None:
    """The account has no free slot, and the gateway has the option --slot-wait. The gateway prints once that it waits,
    and sends the key when another device has freed its slot."""
    server.sessions.set_up(account="account-1", device="other", content_ids=("other",), limit=1)
    gateway = start(film, slot_wait=30)
    url = key_url(gateway.url())
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(ask, url)
        until(lambda: "Waiting for at most 30 s" in gateway.errors, "words about the limit and the wait")
        assert not reply.done()
        server.kill_device("other")
        assert reply.result(PATIENCE_S).body == clips["progressive"].content.keys[0].key
    assert gateway.errors.count("1007") == 1, gateway.errors
    row("trouble", HOST, "the limit is reached, with --slot-wait", "says so, gives the key when a slot is free")


@pytest.mark.quick
def test_gatewaySlotWait_playerGoes(server: HeadEnd, start: Start, film: Path) -> None:
    """The player closes its connection while the gateway waits for a slot; the gateway takes no slot. The next request
    for the key takes a slot."""
    server.sessions.set_up(account="account-1", device="other", content_ids=("other",), limit=1)
    gateway = start(film, slot_wait=30)
    url = key_url(gateway.url())
    parts = urlsplit(url)
    with socket.create_connection(("127.0.0.1", parts.port), PATIENCE_S) as client:
        client.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        until(lambda: "Waiting for at most 30 s" in gateway.errors, "words about the wait")
    until(lambda: "no longer waits for a slot" in gateway.errors, "the gateway gives up")
    server.kill_device("other")
    assert len(server.sessions.all()) == 1
    assert ask(url).status == 200
    assert gateway.stop() == 0
    until_ended(server)


def test_gatewayKill_stopsKeysAndSegments(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """The operator kills the session; requests for keys and segments get 410 with the reason, and the gateway prints a
    new URL."""
    gateway = start(film)
    url, playlist = key_url(gateway.url()), gateway.url()
    segment = playlist.rsplit("/", 2)[0] + "/2/film0.ts"
    assert ask(url).status == 200
    assert ask(segment).status == 200
    server.kill_account("account-1")
    until(lambda: ask(url).status == 410, "keys stop")
    for name in (url, segment, playlist):
        reply = ask(name)
        assert reply.status == 410
        assert len(reply.text) > 20
    assert gateway.url(1).rsplit("/", 3)[1] != playlist.rsplit("/", 3)[1]
    assert reply.text.splitlines()[0] in gateway.errors
    row("trouble", HOST, "the operator ends the session", "keys and segments stop: 410 with the reason")


def test_gatewayKill_endsThePlayer(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """The operator kills the session; the gateway ends the player that it runs, and exits with code 4."""
    command = ["ffmpeg", "-v", "error", "-re", "-stream_loop", "-1", "-i", "{clip}", "-f", "null", "-"]
    gateway = start(film, "--", *command)
    until(lambda: "heartbeat" in server.journal.routes(), "the session is kept alive")
    server.kill_account("account-1")
    assert gateway.wait() == 4
    assert len(gateway.errors) > 20
    row("trouble", f"{HOST} with PLAYER", "the operator ends the session", "ends the player and says why; exit code 4")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_gatewaySignal_tearsDown(server: HeadEnd, start: Start, film: Path, row: Row, number: signal.Signals) -> None:
    """The gateway gets a signal while a player that has the key keeps its connection open; the gateway tears the
    session down at once."""
    gateway = start(film)
    parts = urlsplit(key_url(gateway.url()))
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_S)
    connection.request("GET", parts.path)
    assert connection.getresponse().read()
    begin = time.monotonic()
    assert gateway.stop(number) == 0
    assert time.monotonic() - begin < 3
    until_ended(server)
    connection.close()
    row("ends", HOST, number.name, "nothing: the gateway tears the session down at once")


@pytest.mark.parametrize("route", ["setup", "license"])
def test_gatewayMute_isBounded(server: HeadEnd, start: Start, film: Path, row: Row, route: str) -> None:
    """The head-end does not reply; a request for a key gets a message when --timeout has passed. If SIGTERM comes while
    the request still waits, the gateway ends at most one second after --quit-timeout, and prints one warning."""
    server.faults.add(route, Fault.stall(), always=True)
    gateway = start(film, timeout=1, quit_timeout=1)
    begin = time.monotonic()
    reply = ask(key_url(gateway.url()))
    assert reply.status in (502, 504)
    assert len(reply.text) > 20
    assert time.monotonic() - begin < 5
    assert gateway.stop() == 0
    server.kill_account("account-1")
    gateway = start(film, quit_timeout=1)
    asking = threading.Thread(target=ask, args=(key_url(gateway.url()),))
    asking.start()
    server.wait_held(1, PATIENCE_S)
    begin = time.monotonic()
    assert gateway.stop() == 0
    assert time.monotonic() - begin < 1 + 1
    asking.join()
    assert gateway.errors.count("did not confirm the end of the stream") == 1, gateway.errors
    assert "some time: done" not in gateway.errors
    name = {"setup": "the set-up", "license": "the licence request"}[route]
    result = (
        "the player gets the reason at --timeout; "
        "a signal ends the gateway at most one second after --quit-timeout, with a warning"
    )
    row("trouble", HOST, f"no reply to {name}", result)


def test_gatewayLicense_isForOtherKeys(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """The licence does not have the key of the clip; the player gets a message and no key, and the gateway gives the
    slot back."""
    other = {"keys": [{"kty": "oct", "kid": "AAAAAAAAAAAAAAAAAAAAAA", "k": "AAAAAAAAAAAAAAAAAAAAAA"}]}
    server.faults.add("license", Fault.reply(200, body=other, processed=True), always=True)
    gateway = start(film)
    reply = ask(key_url(gateway.url()))
    assert reply.status == 403
    assert "other content" in reply.text
    row("trouble", HOST, "a licence for other keys", "403 with the reason")


# ---- web pages -------------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_gatewayPage_fromElsewhere(server: HeadEnd, start: Start, clips: dict[str, Clip], row: Row) -> None:
    """Web pages request a licence. A page gets one only if its origin is allowed and the header Host of its request has
    the gateway's own address."""
    gateway = start(allow_origin="https://tv.example")
    url, body = gateway.url(), request_of(clips["progressive"].content.keys[0].kid)
    port = urlsplit(url).port
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://tv.example.evil.example"},
        {"Host": "evil.example"},
        {"Host": f"evil.example:{port}"},
        {"Host": "127.0.0.1"},
        {"Host": f"127.0.0.1:{port}.evil.example", "Origin": "https://tv.example"},
    ):
        for method in ("POST", "OPTIONS"):
            reply = ask(url, method, body, **headers)
            assert reply.status == 403, headers
            assert "Access-Control-Allow-Origin" not in reply.headers
    assert not server.journal.entries()
    assert "https://evil.example" in gateway.errors
    reply = ask(url, "POST", body, Sec_Fetch_Site="cross-site")
    assert reply.status == 403
    guess = url.replace("/license", "0/license")
    reply = ask(guess, "POST", body, Origin="https://stranger.example")
    assert reply.status == 404
    assert "Access-Control-Allow-Origin" not in reply.headers
    assert "stranger.example" not in gateway.errors, "a page without the path must not make the gateway print"
    reply = ask(guess, "POST", body, Origin="https://tv.example")
    assert (reply.status, reply.headers["Access-Control-Allow-Origin"]) == (404, "https://tv.example")
    reply = ask(url, "OPTIONS", Origin="https://tv.example", Access_Control_Request_Method="POST")
    assert reply.status == 204
    assert reply.headers["Access-Control-Allow-Origin"] == "https://tv.example"
    reply = ask(url, "POST", body, Origin="https://tv.example")
    assert reply.status == 200, reply.text
    (key,) = json.loads(reply.body)["keys"]
    assert base64.urlsafe_b64decode(key["k"] + "==") == clips["progressive"].content.keys[0].key
    row("trouble", HOST, "a web page of another origin, or DNS rebinding", "403, no key, no session")


@pytest.mark.quick
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"kids":[]}',
        b'{"kids":["short"]}',
        b'{"kids":[1]}',
        b'{"kids":["' + b"A" * 23 + b'"]}',
        b"[" * 5000,
        request_of(*[bytes([n]) * 16 for n in range(33)]),
        b" " * 70000,
    ],
)
def test_gatewayLicense_requestIsWrong(server: HeadEnd, start: Start, body: bytes) -> None:
    """A client sends a malformed licence request; the gateway refuses it with a message, and sets up no session."""
    reply = ask(start().url(), "POST", body)
    assert reply.status == (413 if len(body) > 65536 else 400)
    assert len(reply.text) > 10
    assert not server.journal.entries()


def test_gatewayEvents_tellTheEnd(server: HeadEnd, start: Start, clips: dict[str, Clip]) -> None:
    """A page keeps its event stream open for longer than --idle; the session continues, and when it is lost, the stream
    has the reason."""
    gateway = start(idle=1)
    url = gateway.url()
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_S)
    connection.request("GET", parts.path.replace("license", "events"))
    events = connection.getresponse()
    assert events.headers["Content-Type"] == "text/event-stream"
    assert ask(url, "POST", request_of(clips["progressive"].content.keys[0].kid)).status == 200
    until(lambda: server.journal.routes().count("heartbeat") >= 2, "the session outlives --idle")
    assert server.sessions.active()
    server.kill_account("account-1")
    text = events.read().decode()
    assert "event: ended\ndata: " in text
    assert len(text.split("data: ")[1]) > 20
    connection.close()


# ---- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "options", "code", "named"),
    [
        (["/nonexistent.m3u8"], {}, 3, "/nonexistent.m3u8: No such file"),
        ([], {"license": None}, 2, "--license is missing"),
        ([], {"token_file": None}, 2, "--token-file is missing"),
        ([], {"idle": "soon"}, 2, "--idle"),
        ([], {"slot_wait": "-1"}, 2, "--slot-wait"),
        ([], {"port": "65536"}, 2, "--port"),
        ([], {"key_id": "00"}, 2, "--key-id"),
        ([], {"allow_origin": "tv.example"}, 2, "--allow-origin"),
        ([], {"allow_origin": "https://tv.example/"}, 2, "--allow-origin"),
        (["--", "mpv"], {}, 2, "which clip"),
        ([], {"licence": "x"}, 2, "licence"),
        ([], {"ca_file": "/nonexistent"}, 3, "an option is wrong: --ca-file: "),
    ],
)
def test_gatewayArguments_areWrong(
    start: Start, words: list[str], options: dict[str, Any], code: int, named: str
) -> None:
    """An argument is wrong; one message of the gateway names the argument and the reason."""
    gateway = start(*words, **options)
    assert gateway.wait() == code
    assert gateway.errors.count(named) == 1, gateway.errors


@pytest.mark.quick
def test_gatewayUrl_isWrong(server: HeadEnd, start: Start, clips: dict[str, Clip]) -> None:
    """libusher refuses the URL of the session manager; the player and the viewer read the name of the gateway's
    option."""
    gateway = start(ssm="foo")
    reply = ask(gateway.url(), "POST", request_of(clips["progressive"].content.keys[0].kid))
    assert reply.status == 502
    assert reply.text.startswith("an option is wrong: --ssm: ")
    assert "an option is wrong: --ssm: " in gateway.errors


def test_gatewayPort_isTaken(start: Start) -> None:
    """Another program uses the port; the gateway says that it cannot use the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        gateway = start(port=taken.getsockname()[1])
        assert gateway.wait() == 3
        assert "Address already in use" in gateway.errors


STRANGER = """
import socket, sys
made = [socket.create_connection(("127.0.0.1", {port})) for _ in range(300)]
made[-1].sendall(b"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n")
try:
    print(made[-1].recv(100))
except ConnectionError:
    print(b"")
print("ready", flush=True)
sys.stdin.read()
"""
"""A program that another user runs: it opens more connections than the gateway allows, and keeps them open."""


def test_gatewayUser_isAnother(server: HeadEnd, start: Start, film: Path, row: Row) -> None:
    """Another user, who may have read the URL in the list of processes, opens connections; the gateway closes them. The
    user who runs the gateway still gets a key."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    gateway = start(film)
    url = key_url(gateway.url())
    program = STRANGER.format(port=urlsplit(url).port, path=urlsplit(url).path)
    command = ["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stranger:
        assert stranger.stdin
        assert stranger.stdout
        try:
            assert stranger.stdout.readline().strip() == "b''"
            assert stranger.stdout.readline().strip() == "ready"
            assert not server.journal.entries()
            assert gateway.errors.count("a process of another user was refused") == 1
            assert ask(url).status == 200
        finally:
            stranger.stdin.close()
    row("trouble", HOST, "another user of the machine has the URL", "closes the connection; no key, no session")


@pytest.mark.quick
def test_gatewayUser_connectsByIpv6(start: Start, film: Path) -> None:
    """A process of the same user gets a key through an IPv6 socket, which connects to ::ffff:127.0.0.1."""
    parts = urlsplit(key_url(start(film).url()))
    with socket.create_connection(("::ffff:127.0.0.1", parts.port), PATIENCE_S) as client:
        client.sendall(f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        assert b" 200 OK\r\n" in client.makefile("rb").read()


# ---- clients that are slow, gone or hostile --------------------------------------------------------------------------


def test_gatewayStranger_isDisconnected(start: Start, film: Path) -> None:
    """A client opens a connection, but no request on it names the playback. The gateway closes the connection when it
    has refused a request, or when no request comes."""
    gateway = start(film)
    parts = urlsplit(gateway.url())
    with (
        socket.create_connection(("127.0.0.1", parts.port), PATIENCE_S) as mute,
        socket.create_connection(("127.0.0.1", parts.port), PATIENCE_S) as guess,
    ):
        guess.sendall(f"GET /guess/0/a HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        assert guess.makefile("rb").read().startswith(b"HTTP/1.1 404")
        assert mute.recv(1) == b""


@pytest.mark.quick
def test_gatewayBody_isEndless(start: Start) -> None:
    """A client sends a body without end; the gateway closes the connection."""
    parts = urlsplit(start().url())
    with socket.create_connection(("127.0.0.1", parts.port), PATIENCE_S) as client:
        head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.sendall(head.encode())
        sent = 0
        with pytest.raises(ConnectionError):
            while sent < 64 << 20:
                client.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
                sent += 65536


def test_gatewayKill_cutsASegment(server: HeadEnd, start: Start, film: Path, tmp_path: Path) -> None:
    """The operator kills the session while a player reads a segment; the gateway ends the reply before the end of the
    segment."""
    text = film.read_text().splitlines()
    key_line = next(line for line in text if line.startswith("#EXT-X-KEY"))
    with (tmp_path / "large.ts").open("wb") as file:
        file.truncate(64 << 20)
    (tmp_path / "film.m3u8").write_text(f"#EXTM3U\n{key_line}\n#EXTINF:1,\nlarge.ts\n")
    gateway = start(tmp_path / "film.m3u8")
    url = key_url(gateway.url())
    assert ask(url).status == 200
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_S)
    connection.request("GET", parts.path.replace("/1/key", "/2/large.ts"))
    reply = connection.getresponse()
    assert reply.headers["Content-Length"] == str(64 << 20)
    assert len(reply.read(1 << 20)) == 1 << 20
    server.kill_account("account-1")
    until(lambda: ask(url).status == 410, "keys stop")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        reply.read()
    connection.close()


def test_gatewayClients_areMany(server: HeadEnd, start: Start, film: Path, clips: dict[str, Clip]) -> None:
    """Forty clients request the key at the same time; all get it, and the gateway uses one licence and one session."""
    url = key_url(start(film).url())
    with ThreadPoolExecutor(40) as pool:
        replies = list(pool.map(lambda _: ask(url), range(40)))
    assert {(reply.status, reply.body) for reply in replies} == {(200, clips["progressive"].content.keys[0].key)}
    assert server.journal.routes().count("setup") == server.journal.routes().count("license") == 1


@pytest.mark.quick
def test_gatewayKeys_rotate(server: HeadEnd, start: Start, clips: dict[str, Clip]) -> None:
    """The player of a long stream requests more keys than the gateway keeps, and then an early key again; it gets them
    all."""
    content_id = clips["progressive"].content.content_id
    kids = [number.to_bytes(16, "big") for number in range(1, 34 * 32 + 1)]
    for kid in kids:
        server.add_key(kid, kid[::-1], content_id)
    url = start().url()
    for first in [*range(0, len(kids), 32), 0]:
        part = kids[first : first + 32]
        reply = ask(url, "POST", request_of(*part))
        assert reply.status == 200, (first, reply.text)
        found = [base64.urlsafe_b64decode(key["k"] + "==") for key in json.loads(reply.body)["keys"]]
        assert found == [kid[::-1] for kid in part]
    assert server.journal.routes().count("setup") == 1


# ---- the end of the gateway ------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_gatewayStart_isInterrupted(start: Start) -> None:
    """The gateway gets SIGTERM while the server of the clip does not reply; the gateway ends at once."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        mute.settimeout(PATIENCE_S)
        gateway = start(f"http://127.0.0.1:{mute.getsockname()[1]}/film.m3u8")
        connection, _ = mute.accept()
        begin = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - begin < 3
        assert not gateway.errors
        connection.close()


MUTE_NAMES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out) {
  int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
  *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
  if (!name || strcmp(name, "mute.example") != 0) return real(name, service, hints, out);
  fputs("waits for the name\\n", stderr);
  sleep(1000);
  return EAI_AGAIN;
}
"""
"""A library whose getaddrinfo() does not return when the name is mute.example."""


def test_gatewayName_isNotFound(server: HeadEnd, start: Start, film: Path, tmp_path: Path) -> None:
    """The gateway gets SIGTERM while a thread waits for the lookup of a host name; the gateway ends when --quit-timeout
    has passed."""
    (tmp_path / "mute.c").write_text(MUTE_NAMES)
    library = tmp_path / "mute.so"
    command = ["gcc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "mute.c"), "-ldl"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    text = film.read_text().replace("film0.ts", "http://mute.example/film0.ts")
    (tmp_path / "film.m3u8").write_text(text)
    gateway = start(tmp_path / "film.m3u8", quit_timeout=1, environment={"LD_PRELOAD": str(library)})
    url = key_url(gateway.url())
    assert ask(url).status == 200
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), PATIENCE_S) as client:
        path = urlsplit(url).path.replace("/1/key", "/2/film0.ts")
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode())
        until(lambda: "waits for the name" in gateway.errors, "the gateway looks the name up")
        begin = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - begin < 4
    until_ended(server)


@pytest.mark.quick
@pytest.mark.parametrize("shell", ['exec env --ignore-signal=CHLD "$@"', 'sleep 0.05 & exec "$@"'])
def test_gatewayChild_isOfAnotherProgram(start: Start, film: Path, shell: str) -> None:
    """The program that started the gateway ignores SIGCHLD, or has left a child process to the gateway; the gateway
    still ends when its player ends."""
    gateway = start(film, "--", "sh", "-c", "sleep 0.2; exit 7", shell=shell)
    assert gateway.wait() == 7
