"""Tests the journal, and the protocol violations that the head-end finds in it."""

from __future__ import annotations

import dataclasses
from enum import Enum

import pytest
from headend_client import Client, InBackground, raw

from pytest_usher import HeadEndFactory
from usher.testing.headend import Fault, HeadEnd, Journal, Outcome


def test_entry_holdsTheRequestExactlyAsSent(headend: HeadEnd) -> None:
    token = headend.content_token("alice")
    head = (
        "POST /TENANT1/fpls/contentlicenseservice/v1/licenses?a=1&renew=false&a=%20 HTTP/1.1\r\nHost: x\r\n"
        f"NV-Authorizations: {token}\r\nx-CORRELATION-id: 42\r\nConnection: close\r\nContent-Length: 4\r\n\r\n"
    )
    raw(headend, head.encode() + b"\x00\xff\r\n")
    (entry,) = headend.journal
    assert (entry.number, entry.at_ms, entry.route, entry.key_system) == (1, headend.now_ms, "license", "fairplay")
    assert (entry.method, entry.path) == (
        "POST",
        "/TENANT1/fpls/contentlicenseservice/v1/licenses?a=1&renew=false&a=%20",
    )
    assert entry.query == (("a", "1"), ("renew", "false"), ("a", " "))
    assert [name for name, _ in entry.headers] == [
        "Host",
        "NV-Authorizations",
        "x-CORRELATION-id",
        "Connection",
        "Content-Length",
    ]
    assert (entry.header("X-Correlation-ID"), entry.header("absent")) == ("42", None)
    assert entry.body == b"\x00\xff\r\n"
    assert (entry.account, entry.parts[0].raw, entry.parts[0].claims["typ"]) == ("alice", token, "ContentAuthZ")
    assert (entry.status, entry.error_code, entry.outcome) == (400, 4000, Outcome.ANSWERED)
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.status = 200  # type: ignore[misc]


def test_unknownPaths_areJournalledToo(headend: HeadEnd, client: Client) -> None:
    assert client.send("POST", f"{headend.url}/OTHER/ssm/v1/sessions/setup").status == 404
    wrong = client.send("GET", f"{headend.ssm_url}/v1/sessions/setup")
    assert (wrong.status, wrong.headers["Allow"]) == (405, "POST")
    assert client.send("POST", f"{headend.url}//TENANT1/ssm/v1/sessions/setup").status == 404
    assert headend.journal.routes() == ["unknown"] * 3
    assert "unknown GET /TENANT1/ssm/v1/sessions/setup" in headend.journal.dump()


def test_filters_combine(headend: HeadEnd, client: Client) -> None:
    alice = client.setup(headend.content_token("alice")).token
    bob = client.setup(headend.content_token("bob")).token
    client.heartbeat(alice)
    client.teardown(bob)
    session = headend.sessions.only("alice").id
    assert headend.journal.routes(account="alice") == headend.journal.routes(session=session) == ["setup", "heartbeat"]
    assert headend.journal.count("setup") == 2 and headend.journal.count("setup", account="bob") == 1
    assert [entry.number for entry in headend.journal.entries(after=2)] == [3, 4]
    assert headend.journal.last(account="bob").route == "teardown"
    assert headend.journal.counts() == {"setup": 2, "heartbeat": 1, "teardown": 1}
    assert (len(headend.journal), headend.journal[-1].number) == (4, 4)
    with pytest.raises(LookupError, match="license"):
        headend.journal.last("license")
    with pytest.raises(ValueError, match="unknown route 'licence'"):
        headend.journal.count("licence")


class Member(str, Enum):
    """An enumeration like usher.KeySystem. This test cannot use usher.KeySystem itself, which needs the library."""

    WIDEVINE = "EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"


def test_keySystem_isANameOrAMemberOfTheEnumeration(headend_factory: HeadEndFactory) -> None:
    """The host passes key systems as members of usher.KeySystem; the head-end reads them like its own names."""
    headend = headend_factory(enforced=frozenset({Member.WIDEVINE}))
    client = Client(headend)
    assert headend.config.enforced == {"widevine"}
    assert headend.license_url(Member.WIDEVINE) == headend.license_url("widevine")
    assert headend.certificate_url(Member.WIDEVINE) == headend.certificate_url("widevine")
    headend.faults.add("license", Fault.status(500), key_system=Member.WIDEVINE)
    token = headend.content_token()
    assert client.license("playready", token).status != 500
    assert client.license("widevine", token).status == 500
    assert [entry.status for entry in headend.journal.entries(key_system=Member.WIDEVINE)] == [500]
    with pytest.raises(ValueError, match="unknown key system irdeto"):
        headend.license_url("irdeto")  # type: ignore[arg-type]


def test_waitFor_wakesOnArrivalAndOnAnswer(headend: HeadEnd, client: Client) -> None:
    headend.faults.add("setup", Fault.stall())
    asking = InBackground(client.setup)
    assert headend.journal.wait_for(1, route="setup")[0].status is None
    with pytest.raises(TimeoutError, match=r"1 requests to setup within 0.01 s; the journal:\n#"):
        headend.journal.wait_for(1, 0.01, route="setup", answered=True)
    headend.release()
    assert headend.journal.wait_for(1, route="setup", answered=True)[0].status == 200
    assert headend.journal.wait_for(lambda journal: journal.count("setup") == 1)
    asking.result()


def test_limit_dropsTheOldest(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(journal_limit=2)
    client = Client(he)
    for _ in range(4):
        client.heartbeat(None)
    assert [entry.number for entry in he.journal] == [3, 4]
    assert he.journal.counts() == {"heartbeat": 4}
    he.journal.clear()
    assert len(he.journal) == 0 and client.heartbeat(None).status == 400 and he.journal[0].number == 5


def test_dump_isReadableAndHoldsNoToken(headend: HeadEnd, client: Client) -> None:
    assert Journal().dump() == "(no requests)"
    content = headend.content_token_with_key("alice")
    first = client.setup(content)
    headend.advance(60_000)
    headend.faults.add("heartbeat", Fault.drop("after"))
    with pytest.raises(ConnectionError):
        client.heartbeat(first.token)
    client.heartbeat(first.token)
    sid = headend.sessions.all()[0].id[:4]
    lines = headend.journal.dump().splitlines()
    assert lines[0].split() == ["#", "time", "route", "account", "sent", "answer", "given", "fault"]
    assert f"S:{sid}…#1" in lines[1] and "C:" in lines[1] and ",K:" in lines[1]
    assert lines[2].split() == [
        "2", "+60.000s", "heartbeat", "alice", f"S:{sid}…#1", "-", "dropped", f"S:{sid}…#2", "(lost)", "drop", "after",
    ]  # fmt: skip
    assert "400/1006" in lines[3]
    assert not any(part in headend.journal.dump() for part in (first.token, content))
    assert str(headend.journal[2]).startswith("3 +0.000s heartbeat alice")


def test_clean_afterAWellBehavedClient(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token(session_control=True)
    token = client.setup(content).token
    client.license("fairplay", f"{content},{token}")
    for period in (60_000, 58_000, 60_250):
        headend.advance(period)
        token = client.heartbeat(token).token
    client.teardown(token)
    headend.assert_clean()


def test_violation_afterTeardown(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    client.teardown(token)
    client.heartbeat(token)
    client.teardown(token)
    assert [(v.kind, v.number) for v in headend.violations()] == [("after-teardown", 3), ("after-teardown", 4)]
    with pytest.raises(AssertionError, match=r"2 violations:\n#3 after-teardown: heartbeat"):
        headend.assert_clean()
    headend.assert_clean(ignore=["after-teardown"])
    with pytest.raises(ValueError, match="unknown violation kind late"):
        headend.assert_clean(ignore=["late"])


def test_violation_afterATeardownWhoseReplyWasLost(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    headend.faults.add("teardown", Fault.drop("before"))
    with pytest.raises(ConnectionError):
        client.teardown(token)
    client.heartbeat(token)
    assert [violation.kind for violation in headend.violations()] == ["after-teardown"]


def test_violation_staleToken_onlyWhenTheNewerOneArrived(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    headend.faults.add("heartbeat", Fault.drop("after"), Fault.non_json(), Fault.without("sessionToken"))
    with pytest.raises(ConnectionError):
        client.heartbeat(token)
    client.heartbeat(token)
    assert headend.violations() == []
    other = client.setup(headend.content_token("bob")).token
    headend.faults.clear()
    client.heartbeat(other)
    client.license("fairplay", f"{headend.content_token('bob')},{other}")
    assert [violation.kind for violation in headend.violations()] == ["stale-token"]


def test_violation_staleToken_notWhileTheNewerReplyIsUnderWay(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    headend.faults.add("heartbeat", Fault.stall("after"))
    beating = InBackground(client.heartbeat, token)
    headend.wait_held(1)
    assert client.teardown(token).code == 1006
    headend.release()
    beating.result()
    assert headend.violations() == []


def test_violation_lateBeat(headend: HeadEnd, client: Client) -> None:
    token = client.setup().token
    headend.advance(60_000)
    token = client.heartbeat(token).token
    headend.advance(60_251)
    token = client.heartbeat(token).token
    assert [(v.kind, v.number, v.message.split("is ")[1]) for v in headend.violations()] == [
        ("late-beat", 3, "251 ms late")
    ]


def test_violation_contentTokenOnAKeepAlive(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token()
    token = client.setup(content).token
    client.heartbeat(f"{content},{token}")
    client.teardown(f"{content},{token}")
    client.teardown(content)
    kinds = [violation.kind for violation in headend.violations(ignore=["after-teardown"])]
    assert kinds == ["content-token-on-keep-alive"] * 3
