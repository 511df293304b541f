"""Tests the faults: every way to hold back, lose or damage a reply."""

from __future__ import annotations

import http.client
import json
import socket

import pytest
from headend_client import Client, InBackground, raw, setup_bytes

from pytest_usher import HeadEndFactory
from usher.testing.headend import Fault, HeadEnd, Outcome


def test_stallBefore_released_isThenProcessed(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.stall())
    asking = InBackground(client.setup)
    headend.wait_held(1)
    entry = headend.journal.last("setup")
    assert (entry.status, entry.outcome, entry.fault) == (None, Outcome.PENDING, "stall before")
    assert len(headend.sessions) == 0 and headend.held == 1
    assert headend.release() == 1
    assert asking.result().status == 200
    assert headend.held == 0 and len(headend.sessions.active()) == 1


def test_stallAfter_hasTakenEffectAlready(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.stall("after"))
    asking = InBackground(client.setup)
    headend.wait_held(1)
    session = headend.sessions.only()
    entry = headend.journal.last("setup")
    assert (entry.session, entry.issued, entry.delivered, entry.status) == (session.id, 1, False, None)
    headend.release()
    assert asking.result().status == 200
    assert headend.journal.last("setup").delivered


def test_stall_clientGoesAway_isSeen(headend: HeadEnd) -> None:
    headend.faults.add("setup", Fault.stall("before"), Fault.stall("after"))
    for held_after in (0, 1):
        with socket.create_connection(("127.0.0.1", headend.port)) as connection:
            connection.sendall(setup_bytes(headend))
            headend.wait_held(1)
        headend.wait_held(0)
        headend.journal.wait_for(lambda journal: journal[-1].outcome is Outcome.CLIENT_GONE)
        assert headend.journal[-1].status is None
        assert len(headend.sessions) == held_after


def test_stall_doesNotHoldOthers(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("heartbeat", Fault.stall(), always=True, account="alice")
    alice = client.setup(headend.content_token("alice")).token
    bob = client.setup(headend.content_token("bob")).token
    asking = [InBackground(client.heartbeat, alice) for _ in range(3)]
    headend.wait_held(3)
    assert client.heartbeat(bob).status == 200
    assert headend.release("teardown") == 0
    assert headend.release(count=1) == 1
    headend.wait_held(2)
    assert headend.release() == 2
    assert sorted(ask.result().status for ask in asking) == [200, 400, 400]


@pytest.mark.parametrize(("when", "active"), [("before", 0), ("after", 1)])
def test_delay_endsWithTheClockAlone(headend: HeadEnd, client: Client, when: str, active: int) -> None:
    headend.faults.add("setup", Fault.delay(3000, "before" if when == "before" else "after"))
    asking = InBackground(client.setup)
    headend.wait_delayed(1)
    assert len(headend.sessions.active()) == active
    headend.advance(2999)
    headend.wait_delayed(1)
    assert headend.journal[0].status is None
    headend.advance(1)
    assert asking.result().status == 200
    entry = headend.journal[0]
    assert entry.answered_ms == entry.at_ms + 3000


@pytest.mark.parametrize(("when", "active"), [("before", 0), ("after", 1)])
def test_drop_closesWithoutAReply(headend: HeadEnd, when: str, active: int) -> None:
    headend.faults.add("setup", Fault.drop("before" if when == "before" else "after"))
    assert raw(headend, setup_bytes(headend)) == b""
    assert len(headend.sessions.active()) == active
    entry = headend.journal.last("setup")
    assert (entry.outcome, entry.status, entry.delivered) == (Outcome.DROPPED, None, False)


@pytest.mark.parametrize(("when", "active"), [("before", 0), ("after", 1)])
def test_reset_isAReset(headend: HeadEnd, when: str, active: int) -> None:
    headend.faults.add("setup", Fault.reset("before" if when == "before" else "after"))
    with pytest.raises(ConnectionResetError):
        raw(headend, setup_bytes(headend))
    assert len(headend.sessions.active()) == active


def test_resetInHeaders_cutsTheHead(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.reset_in_headers())
    with pytest.raises((ConnectionResetError, http.client.HTTPException)):
        client.setup()
    assert headend.journal.last("setup").outcome is Outcome.DAMAGED
    assert len(headend.sessions.active()) == 1


@pytest.mark.parametrize("keep", [None, 0, 10])
def test_truncate_breaksThePromiseOfContentLength(headend: HeadEnd, keep: int | None) -> None:
    headend.faults.add("setup", Fault.truncate(keep))
    head, _, body = raw(headend, setup_bytes(headend)).partition(b"\r\n\r\n")
    promised = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    assert len(body) == (promised // 2 if keep is None else keep)
    assert b"200 OK" in head and not headend.journal.last("setup").delivered


def test_badChunks_cannotBeRead(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.bad_chunks())
    with pytest.raises((http.client.HTTPException, ValueError)):
        client.setup()


def test_resetInBody_sendsTheHeadersAndAPart(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.reset_in_body())
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        client.setup()
    assert headend.journal.last("setup").outcome is Outcome.DAMAGED
    assert len(headend.sessions.active()) == 1


@pytest.mark.parametrize("keep", [None, 0, 10])
def test_shortLength_promisesLessThanIsSent(headend: HeadEnd, keep: int | None) -> None:
    headend.faults.add("setup", Fault.short_length(keep))
    head, _, body = raw(headend, setup_bytes(headend)).partition(b"\r\n\r\n")
    promised = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    assert promised == (len(body) // 2 if keep is None else keep)
    assert json.loads(body)["sessionToken"] and not headend.journal.last("setup").delivered


@pytest.mark.parametrize("keep", [None, 0, 10])
def test_truncatedChunks_lackTheLastChunk(headend: HeadEnd, keep: int | None) -> None:
    headend.faults.add("setup", Fault.truncated_chunks(keep))
    head, _, body = raw(headend, setup_bytes(headend)).partition(b"\r\n\r\n")
    assert b"chunked" in head and not body.endswith(b"0\r\n\r\n")
    if keep:
        assert body.startswith(b"%x\r\n{" % keep)


def test_endless_isAsLongAsItSays(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.endless(3_000_001))
    assert len(client.setup().body) == 3_000_001
    assert len(headend.sessions.active()) == 1


@pytest.mark.parametrize("ends", ["client", "head-end"])
def test_endless_endsBeforeItsEnd_logsNoTraceback(
    ends: str, headend: HeadEnd, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    headend.faults.add("setup", Fault.endless(1 << 40))
    with socket.create_connection(("127.0.0.1", headend.port)) as connection:
        connection.sendall(setup_bytes(headend))
        assert connection.recv(64).startswith(b"HTTP/1.1 200")
        if ends == "head-end":
            headend.stop()
    if ends == "client":
        headend.faults.clear()
        assert client.setup().status == 200
        headend.stop()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    assert headend.journal.entries(route="setup")[0].outcome is Outcome.DAMAGED


def test_trickle_isSpacedOnTheClock(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    headend.faults.add("teardown", Fault.reply(200, body="abcdef", processed=True) | Fault.trickle(2, 1000))
    asking = InBackground(client.teardown, token)
    for _ in range(2):
        headend.wait_delayed(1)
        assert asking.is_alive()
        headend.advance(1000)
    assert asking.result().body == b"abcdef"
    assert headend.sessions.active() == []


def test_delay_clientGoesAway_waitsNoMore(headend: HeadEnd) -> None:
    headend.faults.add("setup", Fault.delay(1000))
    with socket.create_connection(("127.0.0.1", headend.port)) as connection:
        connection.sendall(setup_bytes(headend))
        headend.wait_delayed(1)
    headend.wait_delayed(0)
    headend.advance(1000)
    assert len(headend.sessions) == 0
    with pytest.raises(TimeoutError, match=r"0 replies wait after 0.01 s, expected 1"):
        headend.wait_delayed(1, 0.01)
    with pytest.raises(TimeoutError, match=r"0 requests are held after 0.01 s, expected 1"):
        headend.wait_held(1, 0.01)


def test_trickle_tokenCountsAsDeliveredAtTheEnd(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.trickle(piece_bytes=64, every_ms=0))
    assert client.setup().status == 200
    headend.journal.wait_for(lambda journal: journal[0].delivered)


def test_status_takesNoEffectUnlessTold(headend: HeadEnd, client: Client) -> None:
    headend.faults.add(
        "setup", Fault.status(503, retry_after=7), Fault.status(429, body={"error": "slow down"}, processed=True)
    )
    busy, slow = client.setup(), client.setup()
    assert (busy.status, busy.headers["Retry-After"], busy.body) == (503, "7", b"")
    assert (slow.status, slow.json) == (429, {"error": "slow down"})
    assert len(headend.sessions) == 1
    assert [entry.status for entry in headend.journal] == [503, 429]


@pytest.mark.parametrize("status", [401, 403, 500, 299])
def test_status_canBeAny(headend: HeadEnd, client: Client, status: int) -> None:
    headend.faults.add("*", Fault.status(status, headers={"X-Why": "test"}, body="no"))
    reply = client.setup()
    assert (reply.status, reply.headers["X-Why"], reply.body) == (status, "test", b"no")


def test_redirect_namesTheLocation(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.redirect("http://tenant.example.invalid/"), Fault.redirect("/x", 307))
    assert [client.setup().status for _ in range(2)] == [302, 307]
    headend.faults.add("setup", Fault.redirect("http://tenant.example.invalid/"))
    assert client.setup().headers["Location"] == "http://tenant.example.invalid/"


def test_error_hasThePlatformsBody(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("heartbeat", Fault.error(1006, message="killed"))
    reply = client.heartbeat(client.setup().token)
    assert (reply.status, reply.json) == (400, {"errorCode": 1006, "message": "killed"})
    assert headend.journal.last("heartbeat").error_code == 1006


def test_bodies_thatAreNotTheJson(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.html_page(), Fault.non_json(), Fault.empty_body(), Fault.without("sessionToken"))
    page, text, empty, missing = (client.setup(headend.content_token(str(n))) for n in range(4))
    assert page.status == 200 and page.headers["Content-Type"].startswith("text/html") and b"<html>" in page.body
    assert (text.status, text.body) == (200, b"session ok") and text.headers["Content-Type"].startswith(
        "application/json"
    )
    assert (empty.status, empty.body) == (200, b"")
    assert missing.json == {"heartbeat": 60}
    assert [session.account for session in headend.sessions.active()] == ["1", "2", "3"]
    assert not any(entry.delivered for entry in headend.journal)


@pytest.mark.parametrize("value", ["60", 0, -1, 0.07, 1e12, None, True, [], {}])
def test_fields_takeAnyValue(headend: HeadEnd, client: Client, value: object) -> None:
    headend.faults.add("setup", Fault.fields(heartbeat=value))
    assert client.setup().json["heartbeat"] == value
    assert headend.journal[0].delivered


def test_rename_spellsAFieldOtherwise(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.rename("sessionToken", "sessiontoken") | Fault.rename("heartbeat", "HEARTBEAT"))
    assert set(client.setup().json) == {"sessiontoken", "HEARTBEAT"}


def test_oversized_staysValid(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.oversized(2_000_000))
    headend.faults.add("teardown", Fault.reply(200, body="ok", processed=True) | Fault.oversized(100))
    reply = client.setup()
    assert len(reply.body) >= 2_000_000 and reply.token
    assert len(client.teardown(reply.token).body) == 100


def test_header_isAdded(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.header("X-Extra", "1"))
    assert client.setup().headers["X-Extra"] == "1"


def test_faults_areUsedUpInOrder(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    headend.faults.add("heartbeat", Fault.none(), Fault.status(500), times=2)
    headend.faults.add("heartbeat", Fault.status(503), always=True)
    assert headend.faults.pending == 4
    token = client.heartbeat(client.heartbeat(token).token).token
    assert [client.heartbeat(token).status for _ in range(4)] == [500, 500, 503, 503]
    headend.faults.clear("teardown")
    assert client.heartbeat(token).status == 503
    headend.faults.clear()
    assert client.heartbeat(token).status == 200
    assert [entry.fault for entry in headend.journal][:4] == [None, "none", "none", "status 500"]


def test_faults_canBeForAKeySystemOrAPredicate(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("license", Fault.status(500), key_system="widevine", always=True)
    headend.faults.add("license", Fault.status(404), where=lambda entry: b"special" in entry.body)
    token = headend.content_token(session_control=False)
    assert client.license("fairplay", token, b"common").status == 200
    assert client.license("fairplay", token, b"special").status == 404
    assert client.license("widevine", token).status == 500


def test_faults_badScript_isRefusedAtOnce(headend: HeadEnd) -> None:
    with pytest.raises(ValueError, match="unknown route 'set-up'"):
        headend.faults.add("set-up", Fault.drop())
    with pytest.raises(ValueError, match="no fault"):
        headend.faults.add("setup")
    with pytest.raises(ValueError, match="times"):
        headend.faults.add("setup", Fault.drop(), times=0)
    for bad in (
        {"kind": "explode"},
        {},
        {"kind": "status"},
        {"kind": "delay", "ms": 1, "when": "soon"},
        {"kind": "drop", "x": 1},
    ):
        with pytest.raises(ValueError, match="fault"):
            Fault.from_json(bad)


def test_fault_thatDoesNotFitTheReply_answers500(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(teardown_reply="text")
    client = Client(he)
    token = client.setup().token
    he.faults.add("teardown", Fault.without("sessionToken"))
    reply = client.teardown(token)
    assert reply.status == 500 and "edits JSON" in reply.json["message"]


def test_combined_delayAndStatus(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.stall() | Fault.status(503) | Fault.header("Retry-After", "1"))
    asking = InBackground(client.setup)
    headend.wait_held(1)
    headend.release()
    assert (asking.result().status, asking.result().headers["Retry-After"]) == (503, "1")
    assert headend.journal[0].fault == "stall before | status 503 | header Retry-After"


def test_everyKind_canBeToldInJson() -> None:
    told = json.loads(
        """[{"kind": "none"}, {"kind": "stall", "when": "after"}, {"kind": "delay", "ms": 5}, {"kind": "trickle"},
        {"kind": "drop", "when": "after"}, {"kind": "reset"}, {"kind": "reset_in_headers"}, {"kind": "reset_in_body"},
        {"kind": "truncate", "keep_bytes": 1}, {"kind": "short_length"}, {"kind": "truncated_chunks"},
        {"kind": "endless"}, {"kind": "bad_chunks"}, {"kind": "reply", "status": 200, "body": {"a": 1}},
        {"kind": "status", "status": 503, "retry_after": 1}, {"kind": "error", "code": 1006},
        {"kind": "redirect", "location": "/"}, {"kind": "html_page"}, {"kind": "non_json"}, {"kind": "empty_body"},
        {"kind": "header", "name": "A", "value": "b"}, {"kind": "without", "fields": ["a", "b"]},
        {"kind": "fields", "overrides": {"heartbeat": "60"}}, {"kind": "rename", "old": "a", "new": "b"},
        {"kind": "oversized", "size_bytes": 9}]"""
    )
    labels = [Fault.from_json(value).label for value in told]
    assert len(set(labels)) == len(told)
    assert Fault.from_json(told[1]) == Fault.stall("after")
