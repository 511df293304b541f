"""Tests the page, the feed that sends its data, and which clients may control the head-end."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any

import pytest
from headend_client import AUTH, Client, InBackground

from pytest_usher import HeadEndFactory
from usher.testing.headend import (
    KEY_SYSTEMS,
    ROUTES,
    Fault,
    HeadEnd,
    HeadEndConfig,
    ManualClock,
    Scripted,
    SessionState,
)
from usher.testing.headend.network.faults import KINDS
from usher.testing.headend.network.field_faults import TOXICS, WIREMOCK_FAULTS
from usher.testing.headend.oracle.feed import MOST_ACTIVE, MOST_REQUESTS, QUEUE_EVENTS

HOSTILE = "</script><img src=x onerror=alert(1)>\n\ndata: {}\r\nevent: stopped\u2028\u202e\ud800'\"&"


class Watcher:
    """A client that reads the feed as the page does."""

    def __init__(self, he: HeadEnd, context: ssl.SSLContext | None = None) -> None:
        self._connection = (
            http.client.HTTPConnection(he.config.host, he.port, timeout=10)
            if context is None
            else http.client.HTTPSConnection(he.config.host, he.port, timeout=10, context=context)
        )
        self._connection.request(
            "GET", "/_control/events", headers={"Accept": "text/event-stream", "Sec-Fetch-Site": "same-origin"}
        )
        self.reply = self._connection.getresponse()
        self.ids: list[int] = []

    def next(self) -> tuple[str, dict[str, Any]] | None:
        """Returns the name and the data of the next event; None at the end of the stream."""
        fields: dict[str, str] = {}
        while line := self.reply.readline().decode("ascii"):
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                assert name in ("id", "event", "data", "retry") and name not in fields, line
                fields[name] = value
            elif "event" in fields:
                self.ids.append(int(fields["id"]))
                return fields["event"], json.loads(fields["data"])
            else:
                fields.clear()
        return None

    def snapshot(self) -> dict[str, Any]:
        """Returns the data of the next event, which must be a snapshot."""
        event = self.next()
        assert event is not None and event[0] == "snapshot", event
        return event[1]

    def until(self, reached: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Returns the changes up to the first for which `reached` is true. Skips pings: the head-end sends one every
        ten seconds, so a ping comes only if the machine is slow."""
        seen: list[dict[str, Any]] = []
        while not seen or not reached(seen[-1]):
            event = self.next()
            if event is not None and event[0] == "ping":
                continue
            assert event is not None and event[0] == "change", (event, seen)
            seen.append(event[1])
        return seen

    def close(self) -> None:
        self.reply.close()
        self._connection.close()


@contextmanager
def watching(he: HeadEnd, context: ssl.SSLContext | None = None) -> Iterator[Watcher]:
    watcher = Watcher(he, context)
    try:
        yield watcher
    finally:
        watcher.close()


def wait_watchers(he: HeadEnd, count: int, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while he.feed.watchers != count:
        assert time.monotonic() < end, f"{he.feed.watchers} watchers after {seconds} s, expected {count}"
        time.sleep(0.005)


def rows(changes: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for change in changes for row in change.get(name, [])]


# The page.


class Inline(HTMLParser):
    """Collects the page's inline scripts and styles, and the addresses that it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.addresses: list[str] = []
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag if tag in self.texts else None
        if self._open:
            self.texts[tag].append("")
        for name, value in attrs:
            assert not name.startswith("on") and name != "style", f"{tag} has an inline {name}"
            if name in ("src", "href", "action"):
                self.addresses.append(value or "")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._open = None


@pytest.mark.parametrize("path", ["/", "/_control/page", "/?theme=dark"])
def test_page_isOneDocumentUnderAStrictPolicy(headend: HeadEnd, client: Client, path: str) -> None:
    reply = client.send("GET", headend.url + path)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = dict(part.split(" ", 1) for part in reply.headers["Content-Security-Policy"].split("; "))
    page = Inline(reply.body.decode())
    for kind in ("script", "style"):
        (text,) = page.texts[kind]
        assert policy[f"{kind}-src"] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert (policy["connect-src"], policy["require-trusted-types-for"]) == ("'self'", "'script'")
    assert (
        "unsafe" not in reply.headers["Content-Security-Policy"] and "*" not in reply.headers["Content-Security-Policy"]
    )
    assert reply.headers["X-Content-Type-Options"] == "nosniff" and reply.headers["X-Frame-Options"] == "DENY"
    assert all(address.startswith(("data:", "/_control/")) for address in page.addresses)
    assert len(headend.journal) == 0


def test_page_scriptNeverParsesText(client: Client, headend: HeadEnd) -> None:
    (script,) = Inline(client.send("GET", headend.page_url).body.decode()).texts["script"]
    for danger in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "DOMParser",
        'setAttribute("on',
    ):
        assert danger not in script


def test_page_offersFaultsForEveryRoute(client: Client, headend: HeadEnd) -> None:
    found = re.search(r"const ROUTES = (\[.*?\]);", client.send("GET", headend.page_url).body.decode(), re.S)
    assert found is not None
    assert set(json.loads(found[1])) == {*ROUTES, "*"} - {"unknown"}


def test_page_offersTheFaultsOfTheApi_underTheirNames(client: Client, headend: HeadEnd) -> None:
    """The form offers every kind of fault, except three: the form has no fields for their arguments, or they change
    nothing."""
    page = client.send("GET", headend.page_url).body.decode()
    table = page.partition("const FAULTS = [")[2].partition("\n];")[0]
    assert set(re.findall(r'^    \["(\w+)", "', table, re.M)) == set(KINDS) - {"none", "reply", "fields"}
    for program, names in (("toxiproxy", set(TOXICS) - {"jitter"}), ("wiremock", set(WIREMOCK_FAULTS))):
        assert set(re.findall(rf'\b{program}\("(\w+)"\)', table)) == names


def test_page_icon_isNoRequestOfAPlayer(headend: HeadEnd, client: Client) -> None:
    assert client.send("GET", f"{headend.url}/favicon.ico").headers["Content-Type"] == "image/svg+xml"
    assert client.send("HEAD", headend.page_url).body == b"" and len(headend.journal) == 0


def test_page_requestWithTokens_isAPlayersGoneAstray(headend: HeadEnd, client: Client) -> None:
    assert client.send("GET", headend.page_url, headend.content_token()).status == 404
    assert client.send("POST", headend.page_url).status == 404
    assert headend.journal.routes() == ["unknown", "unknown"]


def test_page_withoutControl_isNotThere(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(control=False)
    assert [Client(he).send("GET", he.url + path).status for path in ("/", "/_control/page", "/_control/events")] == [
        404
    ] * 3
    assert he.journal.routes() == ["unknown"] * 3


# The feed.


def test_events_snapshot_hasThePathsOfTheServices(headend_factory: HeadEndFactory) -> None:
    """The page shows the paths in the snapshot. Each is the path of a route, and together they are all URLs that the
    ready file has for players."""
    headend = headend_factory(tenant="LAB 1")
    client = Client(headend)
    with watching(headend) as watcher:
        facts = watcher.snapshot()["head_end"]
    urls = [headend.url + row["path"] for row in facts["paths"]]
    assert headend.url + facts["ssm_path"] == urls[0] == headend.ssm_url
    for url in urls[1:]:
        client.send("POST", url, headers={AUTH: "x"})
        client.send("GET", url, headers={AUTH: "x"})
    assert len(urls) == len(set(urls)) == 18
    found = {entry.path: entry.route for entry in headend.journal.entries() if entry.route != "unknown"}
    assert set(found) == {row["path"] for row in facts["paths"][1:]}
    listed = {headend.license_url(key_system, api) for key_system in KEY_SYSTEMS for api in ("v1", "v2")}
    listed |= {headend.certificate_url("fairplay"), headend.certificate_url("widevine"), headend.rights_url}
    listed |= {headend.ssm_url, headend.fps_url, headend.fps_certificate_url, headend.entitlement_url}
    assert listed <= set(urls)
    assert len({(row["group"], row["name"]) for row in facts["paths"]}) == len(urls)


def test_events_snapshot_hasExamplesForTheForms(headend_factory: HeadEndFactory) -> None:
    headend = headend_factory(accounts=["alice", "x" * 121, "bob", "alice"], content_id="film")
    headend.add_key(b"1" * 16, b"k" * 16, "news")
    headend.add_key(b"2" * 16, b"k" * 16)
    with watching(headend) as watcher:
        facts = watcher.snapshot()["head_end"]
    assert (facts["example_accounts"], facts["example_contents"]) == (["alice", "bob"], ["film", "news"])


def test_events_snapshotThenChangesInOrder(headend: HeadEnd, client: Client) -> None:
    first = client.setup(headend.content_token("alice", "film", device="tv", max_sessions=1)).token
    with watching(headend) as watcher:
        assert watcher.reply.getheader("Content-Type") == "text/event-stream"
        told = watcher.snapshot()
        assert (told["clock"], told["now_ms"], told["head_end"]["period_ms"]) == ("manual", headend.now_ms, 60_000)
        assert told["accounts"] == [{"name": "alice", "limit": 1, "held": 1, "refused": 0, "refused_ms": None}]
        (session,), (request,) = told["sessions"], told["requests"]
        assert (session["account"], session["device"], session["contents"], session["state"]) == (
            "alice",
            "tv",
            ["film"],
            "active",
        )
        assert (request["route"], request["account"], request["status"], request["given"]) == (
            "setup",
            "alice",
            200,
            session["token"],
        )
        assert first not in json.dumps(told) and headend.journal[0].parts[0].raw not in json.dumps(told)

        assert client.setup(headend.content_token("alice", max_sessions=1)).code == 1007
        refused = watcher.until(lambda change: any(row["outcome"] == "answered" for row in change.get("requests", [])))
        assert rows(refused, "accounts")[-1]["refused"] == 1 and rows(refused, "sessions") == []
        last = rows(refused, "requests")[-1]
        assert (last["status"], last["code"], last["message"]) == (
            400,
            1007,
            "maximum number of active sessions (1) exceeded",
        )

        headend.advance(60_000)
        moved = watcher.until(lambda change: change["now_ms"] == headend.now_ms)
        assert rows(moved, "sessions") == rows(moved, "requests") == []
        client.heartbeat(first)
        beaten = watcher.until(lambda change: bool(change.get("requests")) and change["requests"][-1]["status"] == 200)
        assert rows(beaten, "sessions")[-1]["expires_ms"] == headend.now_ms + 120_000
        assert rows(beaten, "sessions")[-1]["token"].endswith("#2")

        headend.advance(120_000)
        (expired,) = watcher.until(lambda change: change["totals"]["expired"] == 1)
        assert expired["sessions"][0]["state"] == "expired" and expired["accounts"][0]["held"] == 0
        assert watcher.ids == sorted(set(watcher.ids))


def test_events_faultsAndHeldRequests(headend: HeadEnd, client: Client) -> None:
    with watching(headend) as watcher:
        assert watcher.snapshot()["faults"] == []
        headend.faults.add("setup", Fault.stall(), times=2, account="alice")
        (queued,) = watcher.until(lambda change: "faults" in change)[-1]["faults"]
        assert queued == {"route": "setup", "label": "stall before", "left": 2, "account": "alice", "key_system": None}
        asking = InBackground(client.setup, headend.content_token("alice"))
        held = watcher.until(lambda change: change.get("held") == [1])
        assert rows(held, "faults")[-1]["left"] == 1 and rows(held, "requests")[-1]["outcome"] == "pending"
        headend.release()
        freed = watcher.until(lambda change: bool(change.get("requests")) and change["requests"][-1]["status"] == 200)
        assert [change["held"] for change in freed if "held" in change][-1] == []
        asking.result()
        headend.faults.clear()
        assert watcher.until(lambda change: "faults" in change)[-1]["faults"] == []


def test_events_neverTellOlderThings(headend: HeadEnd) -> None:
    with watching(headend) as watcher:
        watcher.snapshot()
        session = headend.sessions.set_up(account="a", device=None, content_ids=(), limit=1)
        for _ in range(3000):
            session = headend.sessions.keep_alive(session)
        headend.sessions.tear_down(session)
        told = rows(watcher.until(lambda change: change["totals"]["torn_down"] == 1), "sessions")
        assert [row["beats"] for row in told] == sorted(row["beats"] for row in told)
        assert told[-1]["beats"] == 3000 and len(told) < 300


def test_events_systemClock_expiryIsToldThoughNobodyAsks(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(clock="system", period_s=0.05, grace=1.0)
    with watching(he) as watcher:
        watcher.snapshot()
        he.sessions.set_up(account="a", device=None, content_ids=(), limit=1)
        assert watcher.until(lambda change: change["totals"]["expired"] == 1)[-1]["sessions"][0]["state"] == "expired"


def test_events_sharedClock_tellsEveryHeadEnd() -> None:
    clock = ManualClock()
    with HeadEnd(clock=clock) as one, HeadEnd(clock=clock) as two, watching(one) as first, watching(two) as second:
        assert first.snapshot()["began_ms"] == second.snapshot()["began_ms"]
        clock.advance(1000)
        for watcher in (first, second):
            assert watcher.until(lambda change: True)[0]["now_ms"] == clock.now_ms()


def test_events_forgetting_isASnapshot(headend: HeadEnd, client: Client) -> None:
    client.setup()
    with watching(headend) as watcher:
        assert len(watcher.snapshot()["requests"]) == 1
        headend.journal.clear()
        told = watcher.snapshot()
        assert told["requests"] == [] and len(told["sessions"]) == 1
        headend.sessions.clear()
        assert watcher.snapshot()["accounts"] == []


def test_events_areBounded(headend: HeadEnd, client: Client) -> None:
    for number in range(MOST_ACTIVE + 5):
        headend.sessions.set_up(account=f"a{number}", device=None, content_ids=(), limit=1)
    for _ in range(MOST_REQUESTS + 5):
        client.heartbeat(None)
    with watching(headend) as watcher:
        told = watcher.snapshot()
        assert len(told["sessions"]) == MOST_ACTIVE and told["sessions"][-1]["account"] == f"a{MOST_ACTIVE + 4}"
        assert len(told["requests"]) == MOST_REQUESTS and told["requests"][-1]["number"] == MOST_REQUESTS + 5
        assert told["totals"]["active"] == MOST_ACTIVE + 5 and told["totals"]["requests"] == MOST_REQUESTS + 5
        headend.advance(120_000)
        assert watcher.snapshot()["totals"]["expired"] == MOST_ACTIVE + 5


def test_events_hostileNames_stayText(headend: HeadEnd, client: Client) -> None:
    with watching(headend) as watcher:
        watcher.snapshot()
        client.setup(headend.content_token(HOSTILE, HOSTILE, device=HOSTILE))
        told = watcher.until(lambda change: bool(change.get("requests")) and change["requests"][-1]["status"] == 200)
        (session, *_) = rows(told, "sessions")
        assert (session["account"], session["device"], session["contents"]) == (HOSTILE, HOSTILE, [HOSTILE])
        assert HOSTILE.encode("utf-8", "surrogatepass") not in client.send("GET", headend.page_url).body
        for name in ("x" * 5000 + "1", "x" * 5000 + "2"):
            client.setup(headend.content_token(name))
        told = watcher.until(lambda change: change["totals"]["active"] == 3 and bool(change.get("sessions")))
        with watching(headend) as late:
            names = [account["name"] for account in late.snapshot()["accounts"]]
        assert len(set(names)) == 3 and max(map(len, names)) <= 120


def test_events_clientGone_isForgotten(headend: HeadEnd, client: Client) -> None:
    gone, stays = Watcher(headend), Watcher(headend)
    gone.snapshot()
    stays.snapshot()
    wait_watchers(headend, 2)
    gone.close()
    wait_watchers(headend, 1)
    client.setup()
    assert stays.until(lambda change: change["totals"]["active"] == 1)
    stays.close()
    wait_watchers(headend, 0)


def test_events_slowClient_isDroppedAndNobodyElse(headend: HeadEnd, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as slow, watching(headend) as quick:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((headend.config.host, headend.port))
        slow.sendall(b"GET /_control/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        quick.snapshot()
        wait_watchers(headend, 2)
        rounds = 0
        while headend.feed.watchers == 2:
            rounds += 1
            assert rounds < 4 * QUEUE_EVENTS, "the head-end did not disconnect the slow client"
            for number in range(200):
                names = tuple(f"{rounds}-{number}-{index}-{'x' * 90}" for index in range(8))
                headend.sessions.set_up(account=f"a{number}", device=None, content_ids=names, limit=10_000)
            quick.until(lambda change, sessions=200 * rounds: change["totals"]["active"] == sessions)  # type: ignore[misc]
        assert headend.feed.watchers == 1
        headend.sessions.kill(account="a1")
        assert quick.until(lambda change: change["totals"]["killed"] > 0)
        tail = b""
        while piece := slow.recv(1 << 20):
            tail = (tail + piece)[-5:]
        assert tail != b"0\r\n\r\n", "the head-end must cut the slow client's stream, not end it as if it were complete"
    assert caplog.records == []


def test_events_stop_endsEveryStream(headend: HeadEnd, client: Client) -> None:
    watchers = [Watcher(headend) for _ in range(40)]
    for watcher in watchers:
        watcher.snapshot()
    client.setup()
    began = time.monotonic()
    headend.stop()
    assert time.monotonic() - began < 3
    for watcher in watchers:
        names = []
        while (event := watcher.next()) is not None:
            names.append(event[0])
        assert names[-1] == "stopped" and set(names[:-1]) <= {"change"}
        watcher.close()
    assert headend.feed.watchers == 0
    headend.start()
    with watching(headend) as watcher:
        assert len(watcher.snapshot()["sessions"]) == 1


def test_events_stopWithAStuckClient_doesNotHang(headend: HeadEnd) -> None:
    with socket.create_connection((headend.config.host, headend.port)) as stuck:
        stuck.sendall(b"GET /_control/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        wait_watchers(headend, 1)
        for number in range(3000):
            headend.sessions.set_up(account=f"{number}", device="x" * 120, content_ids=("x" * 120,) * 8, limit=1)
        began = time.monotonic()
        headend.stop()
        assert time.monotonic() - began < 3


def test_events_overTls(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(tls=True)
    assert he.page_url == f"https://127.0.0.1:{he.port}/"
    with watching(he, ssl.create_default_context(cafile=str(he.ca_file))) as watcher:
        assert watcher.snapshot()["sessions"] == []
        he.advance(5)
        assert watcher.until(lambda change: True)[0]["now_ms"] == he.now_ms


# The tests below check which clients may control the head-end.


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:{port}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://rebound.example:{port}", "Host": "rebound.example:{port}"},
        {"Host": "rebound.example"},
    ],
)
def test_control_fromAPageElsewhere_isRefused(headend: HeadEnd, client: Client, headers: Mapping[str, str]) -> None:
    client.setup(headend.content_token("alice"))
    sent = {name: value.format(port=headend.port) for name, value in headers.items()}
    for name, body in (
        ("kill", {"account": "alice"}),
        ("advance", {"ms": 1000}),
        ("faults", {"route": "*", "fault": {"kind": "drop"}}),
    ):
        reply = client.send("POST", f"{headend.control_url}/{name}", body=json.dumps(body), headers=sent)
        assert reply.status == 403 and "error" in reply.json
    assert len(headend.sessions.active("alice")) == 1 and headend.faults.pending == 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://LOCALHOST:{port}", "Host": "localhost:{port}"},
        {"Origin": "http://[::1]:9000", "Host": "[::1]:9000"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_control_fromItsOwnPageOrAProgram_isDone(headend: HeadEnd, client: Client, headers: Mapping[str, str]) -> None:
    sent = {name: value.format(port=headend.port) for name, value in headers.items()}
    assert client.send("POST", f"{headend.control_url}/advance", body=b'{"ms": 1}', headers=sent).status == 200


def test_control_readingFromElsewhere_isRefusedButALinkIsFollowed(headend: HeadEnd, client: Client) -> None:
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    for path in ("/_control/events", "/_control/journal", "/", "/_control/page"):
        assert client.send("GET", headend.url + path, headers=elsewhere).status == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.send("GET", headend.page_url, headers=link).status == 200
    assert headend.feed.watchers == 0


def test_player_isNotJudgedByItsOrigin(headend: HeadEnd, client: Client) -> None:
    headers = {"Origin": "https://player.example", "Sec-Fetch-Site": "cross-site", "Host": "player.example"}
    assert client.setup(headers=headers).status == 200


OPEN = "0.0.0.0"


def test_control_offLoopback_asksForItsToken(headend_factory: HeadEndFactory) -> None:
    """The head-end requires its control token when it listens on every address; it refuses requests without the
    token."""
    headend = headend_factory(host=OPEN, control_token=None)
    client, control = Client(headend), f"http://127.0.0.1:{headend.port}/_control"
    token = headend.control_token
    assert token is not None and len(token) == 32 and headend.page_url.endswith(f"/?token={token}")
    assert token not in repr(headend.config)
    for sent in ({}, {"Authorization": "Bearer x"}, {"Authorization": token}, {"Cookie": "usher_control=x"}):
        for path in ("state", "journal", "events", "page"):
            assert client.send("GET", f"{control}/{path}", headers=sent).status == 401
        assert client.send("POST", f"{control}/advance", body=b'{"ms": 1}', headers=sent).status == 401
        assert client.send("POST", f"{control}/advance?token={token}", body=b'{"ms": 1}', headers=sent).status == 401
    for sent in ({"Authorization": f"Bearer {token}"}, {"Cookie": f"usher_control={token}"}):
        assert client.send("POST", f"{control}/advance", body=b'{"ms": 1}', headers=sent).status == 200
    page = client.send("GET", f"http://127.0.0.1:{headend.port}/?token={token}")
    assert page.status == 200 and f"usher_control={token}; HttpOnly" in page.headers["Set-Cookie"]


def test_control_onLoopback_needsNoTokenUnlessOneIsSet(headend_factory: HeadEndFactory) -> None:
    headend = headend_factory()
    assert headend.control_token is None and headend.page_url.endswith("/")
    headend = headend_factory(control_token="secret7")
    assert Client(headend).send("GET", f"{headend.control_url}/state").status == 401
    with pytest.raises(ValueError, match="control_token"):
        HeadEndConfig(control_token="two words")


@pytest.mark.parametrize("host", ["rebound.example:{port}", "rebound.example", "lab.example.rebound.example:{port}"])
def test_control_offLoopback_foreignHost_isRefused(headend_factory: HeadEndFactory, host: str) -> None:
    """The head-end refuses a Host that is not its name, even with the token and a matching Origin (DNS rebinding)."""
    headend = headend_factory(host=OPEN, host_names=["lab.example"])
    name = host.format(port=headend.port)
    headers = {"Host": name, "Origin": f"http://{name}", "Authorization": f"Bearer {headend.control_token}"}
    control = f"http://127.0.0.1:{headend.port}/_control/state"
    assert Client(headend).send("GET", control, headers=headers).status == 403
    own = {**headers, "Host": "LAB.example", "Origin": "http://lab.example"}
    assert Client(headend).send("GET", control, headers=own).status == 200


# The tests below check the functions that the page and the feed use.


def test_kill_theAccountOfASession(headend: HeadEnd, client: Client) -> None:
    name = "x" * 3000
    client.setup(headend.content_token(name))
    client.setup(headend.content_token("bob"))
    session = headend.sessions.only(name).id
    assert client.control("POST", "kill", {"account_of": session}).json == {"killed": 1}
    assert client.control("POST", "kill", {"account_of": "nobody"}).status == 400
    assert headend.sessions.only().account == "bob"


def test_table_accountsAndCounts(headend: HeadEnd, client: Client) -> None:
    for limit in (1, 1, 2):
        client.setup(headend.content_token("alice", max_sessions=limit))
    (alice,) = headend.sessions.accounts()
    assert (alice.name, alice.limit, alice.held, alice.refused, alice.refused_ms) == ("alice", 2, 2, 1, headend.now_ms)
    headend.kill_account("alice")
    assert headend.sessions.counts() == {state: 2 if state is SessionState.KILLED else 0 for state in SessionState}
    assert headend.sessions.account("alice").held == 0 and len(headend.sessions.newest(5, 1)) == 1
    headend.faults.add("*", Fault.drop() | Fault.delay(5), always=True)
    assert headend.faults.script() == [Scripted("*", "drop before | delay 5 ms before", None, None, None)]


def test_journal_keepsTheMessageOfAnError(headend: HeadEnd, client: Client) -> None:
    client.heartbeat(None)
    client.setup()
    assert (headend.journal[0].error_message, headend.journal[1].error_message) == ("session token missing", None)
    assert client.control("GET", "journal").json["entries"][0]["error_message"] == "session token missing"
    assert [entry.number for entry in headend.journal.newest(1)] == [2] and headend.journal.get(3) is None
    assert client.send("GET", headend.page_url, headers={AUTH: "x"}).status == 404
