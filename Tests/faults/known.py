"""The faults that need no network namespaces. These are most rows of the matrix."""

from __future__ import annotations

import gzip
import time
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from dataclasses import replace
from email.utils import formatdate
from functools import partial
from typing import Any

from operations import Fault
from scene import Scene

from stage.closing import ClosingDoor
from stage.http2 import Http2Door
from usher.testing import headend
from usher.testing.doors import State
from usher.testing.headend.network.replies import Reply

Script = headend.Fault


def scripted(
    key: str,
    title: str,
    fault: Script | Callable[[Scene], Script],
    *,
    door: str = "",
    fails_after_ms: int = 0,
    takes_effect: bool = False,
    breaks: tuple[str, ...] = (),
    http2: bool = True,
) -> Fault:
    """Returns a fault that the head-end itself makes, on the route of the operation."""

    def begin(scene: Scene) -> None:
        made = fault if isinstance(fault, Script) else fault(scene)
        scene.headend.faults.add(scene.route, made, always=True, account=scene.account)

    def end(scene: Scene) -> None:
        scene.headend.faults.clear(scene.route)

    return Fault(
        key,
        title,
        begin,
        end,
        door=door,
        fails_after_ms=fails_after_ms,
        takes_effect=takes_effect,
        breaks=breaks,
        http2=http2,
    )


def at_door(key: str, title: str, state: State, *, door: str = "plain", fails_after_ms: int = 0) -> Fault:
    """Returns a fault of the connection: during the fault, the door in front of the head-end is in `state`."""
    return Fault(key, title, partial(_set, state), partial(_set, State.OPEN), door=door, fails_after_ms=fails_after_ms)


def _set(state: State, scene: Scene) -> None:
    assert scene.door is not None
    scene.door.set(state)


def bad_tls(key: str, title: str, kind: str) -> Fault:
    """Returns the fault of a TLS server that the library must not trust; ``kind`` names the method of ``Authority``
    that makes it."""

    def present(kind: str, scene: Scene) -> None:
        assert scene.door is not None
        scene.door.present(getattr(scene.authority, kind)())

    return Fault(key, title, partial(present, kind), partial(present, "server_context"), door="tls")


WAYS: Mapping[int, tuple[str, ...]] = {
    301: ("host", "http"),
    302: ("host", "http"),
    307: ("host", "http", "path", "loop"),
    308: ("host", "http", "path", "loop"),
}
"""For each status, the redirects that the tests play; see `redirect`."""


def redirect(status: int, where: str) -> Fault:
    words = {
        "host": "to another host",
        "http": "from https to http",
        "path": "to another path of the same server",
        "loop": "to the same URL",
    }[where]

    def location(scene: Scene) -> str:
        return {"path": "/elsewhere", "loop": "?"}.get(where) or scene.traps[where].address

    return scripted(
        f"{status} {where}",
        f"{status} {words}",
        lambda scene: Script.redirect(location(scene), status),
        door="tls" if where == "http" else "",
    )


def restart(key: str, title: str, *, keep_table: bool) -> Fault:
    """Returns a fault in which the test stops the head-end during its reply. Until the restart the system refuses
    connections to the head-end. `keep_table`: whether the head-end keeps its session table."""

    def begin(scene: Scene) -> None:
        scene.headend.faults.add(scene.route, Script.stall("after"), account=scene.account)

    def strike(scene: Scene) -> None:
        assert scene.headend.held == 1
        scene.headend.stop()
        if scene.door is not None:
            scene.door.set(State.REFUSING)

    def end(scene: Scene) -> None:
        scene.headend.faults.clear()
        scene.headend.restart(keep_table=keep_table)
        if scene.door is not None:
            scene.door.set(State.OPEN)

    return Fault(key, title, begin, end, strike, spares_others=False, takes_effect=True)


WRONG_TYPES: Mapping[str, Script] = {
    "setup": Script.fields(sessionToken=7, heartbeat="60"),
    "license": Script.fields(keys="none"),
    "heartbeat": Script.fields(sessionToken=7),
    "renewal": Script.fields(sessionToken=["7"]),
    "teardown": Script.reply(200, body='[{"sessionToken": 7}]', content_type="application/json", processed=True),
    "certificate": Script.reply(200, body='{"certificate": 7}', content_type="application/json", processed=True),
}


def with_status(status: int) -> Script:
    """Returns a fault that changes only the status of the real reply."""

    def edit(reply: Reply) -> Reply:
        return replace(reply, status=status)

    return Script(f"as {status}", edits=(edit,))


def coded(name: str, encode: Callable[[bytes], bytes] = bytes) -> Script:
    """Returns a fault that changes only the coding of the reply's body. `name`: the value of Content-Encoding."""

    def edit(reply: Reply) -> Reply:
        headers = (*reply.headers, ("Content-Encoding", name)) if name else reply.headers
        return replace(reply, body=encode(reply.body), headers=headers)

    return Script(f"coded {name}", edits=(edit,))


def bomb(body: bytes) -> bytes:
    """Returns a small gzip body. The decompressed body is the given body and so many blanks that it exceeds
    `max_response_bytes`."""
    return gzip.compress(body + b" " * (4 << 20), compresslevel=1)


def damaged(body: bytes) -> bytes:
    """Returns the body in gzip, with other bytes in the middle."""
    coded = gzip.compress(body)
    return coded[:12] + b"\xff" * 8 + coded[20:]


def in_utf16(body: bytes) -> bytes:
    return body.decode("latin-1").encode("utf-16")


def waits_until_a_date(_: Scene) -> Script:
    now = int(time.time())
    return Script.status(
        429, retry_after=formatdate(now + 2, usegmt=True), headers={"Date": formatdate(now, usegmt=True)}
    )


def closing(pause_ms: int) -> Fault:
    """Returns the fault of a server that closes each connection `pause_ms` after a reply, and does not announce this in
    a header."""

    def set_pause(pause_s: float | None, scene: Scene) -> None:
        assert isinstance(scene.door, ClosingDoor | Http2Door)
        scene.door.closes_after_s = pause_s

    return Fault(
        f"closing {pause_ms}",
        f"server closes each connection {pause_ms} ms after its reply",
        partial(set_pause, pause_ms / 1000),
        partial(set_pause, None),
        door="closing",
    )


COOKIE = "node=7"


def cookies(key: str, title: str, *, keeps: bool) -> Fault:
    """Returns the fault in which every reply of the head-end sets a cookie. `keeps`: whether the library sends the
    cookie back."""

    def begin(scene: Scene) -> None:
        scene.headend.faults.add("*", Script.header("Set-Cookie", f"{COOKIE}; Path=/"), always=True)

    def check(scene: Scene) -> None:
        sent = [entry.header("Cookie") for entry in scene.headend.journal]
        assert set(sent) == ({None, COOKIE} if keeps else {None}), sent
        assert not keeps or set(sent[sent.index(COOKIE) :]) == {COOKIE}, sent

    return Fault(
        key,
        title,
        begin,
        lambda scene: None,
        options={"keep_cookies": True} if keeps else {},
        check=check,
        spares_others=True,
    )


XHTML = b"<!-- portal -->\n<html xmlns='http://www.w3.org/1999/xhtml'><body>Sign in</body></html>"
REFUSAL = {"errorCode": 4000, "message": "internal error"}
LIMITS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "limit": ("400 with the error code 1007", {"errorCode": 1007, "message": "too many"}),
    "limit as text": ("400 with the error code 1007 as text", {"errorCode": "1007", "message": "too many"}),
    "limit as code": ("400 with 1007 in the field code", {"code": 1007, "error": "too many"}),
    "limit nested": ("400 with 1007 as text, one level down", {"error": {"code": "1007", "message": "too many"}}),
}
PROBLEM = {"type": "https://problems.example/limit", "title": "Too many streams", "detail": "3 of 3", "status": 400}
PROBLEM_TYPE = "application/problem+json"


def proxy_denies(scene: Scene) -> None:
    assert scene.proxy is not None and scene.door is not None
    scene.proxy.denied.add(scene.door.port)
    scene.door.present(scene.authority.server_context())  # closes the open tunnel


def proxy_allows(scene: Scene) -> None:
    assert scene.proxy is not None
    scene.proxy.denied.clear()


def proxy(state: State, scene: Scene) -> None:
    assert scene.proxy is not None
    scene.proxy.set(state)


def fall_asleep(scene: Scene) -> None:
    scene.headend.faults.add(scene.route, Script.stall("after"), account=scene.account)


def sleep(scene: Scene) -> None:
    assert scene.headend.held == 1
    scene.stage.sleep(600_000)


def wake_up(scene: Scene) -> None:
    scene.headend.faults.clear(scene.route)


TIMEOUT_MS = 10_000
"""The time-out of every request in these tests: the default of `http_timeout_ms`. With a 60 s period it also applies to
keep-alives."""

FAULTS = (
    at_door("refused", "connection refused", State.REFUSING),
    scripted("reset in head", "reset during the headers", Script.reset_in_headers(), takes_effect=True),
    scripted("reset in body", "reset during the body", Script.reset_in_body(), takes_effect=True),
    at_door("mute", "connection accepted, then nothing", State.MUTE, fails_after_ms=TIMEOUT_MS),
    at_door(
        "mute tls", "connection accepted, then no TLS handshake", State.MUTE, door="tls", fails_after_ms=TIMEOUT_MS
    ),
    scripted(
        "silence", "request read, then no reply", Script.stall("after"), fails_after_ms=TIMEOUT_MS, takes_effect=True
    ),
    scripted(
        "trickle",
        "a reply of one byte per second",
        Script.trickle(1, 1000),
        fails_after_ms=TIMEOUT_MS,
        takes_effect=True,
    ),
    scripted("100 MB", "a body of 100 MB", Script.endless(100_000_000), takes_effect=True),
    scripted(
        "truncated chunks",
        "chunked body without its last chunk",
        Script.truncated_chunks(),
        takes_effect=True,
        http2=False,
    ),
    scripted(
        "bad chunks",
        "chunked body with a chunk size that is not a number",
        Script.bad_chunks(),
        takes_effect=True,
        http2=False,
    ),
    scripted("length too long", "Content-Length larger than the body", Script.truncate(), takes_effect=True),
    scripted("length too short", "Content-Length smaller than the body", Script.short_length(), takes_effect=True),
    scripted("html", "a web page with 200", Script.html_page(), breaks=("after-teardown",)),
    scripted(
        "wrong types", "JSON with fields of wrong types", lambda scene: WRONG_TYPES[scene.operation], takes_effect=True
    ),
    scripted("gzip", "the usual body, compressed with gzip", coded("gzip", gzip.compress), takes_effect=True),
    scripted("deflate", "the usual body, compressed with deflate", coded("deflate", zlib.compress), takes_effect=True),
    scripted("bom", "the usual body after a byte order mark of UTF-8", coded("", BOM_UTF8.__add__), takes_effect=True),
    cookies("cookies", "each reply sets a cookie", keeps=False),
    cookies("cookies kept", "each reply sets a cookie, with keep_cookies", keeps=True),
    *(closing(pause_ms) for pause_ms in (0, 1, 5)),
    scripted("bomb", "gzip that decodes to 4 MiB", coded("gzip", bomb), takes_effect=True, breaks=("after-teardown",)),
    scripted(
        "bad gzip", "a damaged body in gzip", coded("gzip", damaged), takes_effect=True, breaks=("after-teardown",)
    ),
    scripted(
        "cut gzip", "a body in gzip without its end", coded("gzip", lambda b: gzip.compress(b)[:-12]), takes_effect=True
    ),
    scripted("utf-16", "the usual body in UTF-16", coded("", in_utf16), takes_effect=True, breaks=("after-teardown",)),
    scripted(
        "br",
        "a body with a Content-Encoding that is not gzip or deflate",
        coded("br", lambda body: body[::-1]),
        takes_effect=True,
        breaks=("after-teardown",),
    ),
    scripted(
        "hidden gzip",
        "the usual body, compressed without Content-Encoding",
        coded("", gzip.compress),
        takes_effect=True,
        breaks=("after-teardown",),
    ),
    scripted("page", "XHTML behind a comment, with 200", Script.reply(200, body=XHTML), breaks=("after-teardown",)),
    scripted("200 code", "200 with an error code", Script.reply(200, body=REFUSAL), breaks=("after-teardown",)),
    *(scripted(key, title, Script.reply(400, body=body)) for key, (title, body) in LIMITS.items()),
    scripted("problem", "400 with problem+json", Script.reply(400, body=PROBLEM, content_type=PROBLEM_TYPE)),
    scripted("204", "204 without a body", Script.reply(204, processed=True), takes_effect=True),
    scripted("202", "202 with the usual body", with_status(202), takes_effect=True),
    *(redirect(status, where) for status in (301, 302, 307, 308) for where in WAYS[status]),
    scripted("401", "401", Script.status(401)),
    scripted("403", "403", Script.status(403)),
    scripted("409", "409", Script.status(409)),
    scripted("410", "410", Script.status(410)),
    scripted("429", "429, Retry-After 2 s", Script.status(429, retry_after=2)),
    scripted("429 date", "429, Retry-After as a date in 2 s", waits_until_a_date),
    scripted("500", "500", Script.status(500)),
    scripted("503", "503", Script.status(503)),
    bad_tls("expired", "expired certificate", "expired"),
    bad_tls("wrong name", "certificate of another host", "wrong_name"),
    bad_tls("tls 1.0", "no TLS version above 1.0", "old_tls"),
    restart("restarted", "head-end killed during its reply, restarted", keep_table=True),
    restart(
        "restarted empty", "head-end killed during its reply, restarted without its session table", keep_table=False
    ),
    Fault(
        "slept",
        "the machine sleeps ten minutes during the request",
        fall_asleep,
        wake_up,
        sleep,
        spares_others=False,
        takes_effect=True,
    ),
    Fault("proxy 502", "the proxy replies 502", proxy_denies, proxy_allows, door="tls", proxied=True),
    Fault(
        "proxy gone",
        "no proxy listens",
        partial(proxy, State.REFUSING),
        partial(proxy, State.OPEN),
        door="tls",
        proxied=True,
        spares_others=False,
    ),
)
