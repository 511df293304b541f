"""Tests the checks of the journal: each check passes for a correct player, and says in words what a wrong player has
done."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest

from pytest_usher import Expectations, Stage
from usher.testing.headend import HeadEnd


class Wrong:
    """A player that sends what the test tells it to send, even if the protocol forbids it."""

    def __init__(self, headend: HeadEnd) -> None:
        self.headend = headend

    def send(self, operation: str, token: str) -> str:
        """Sends a request; returns the session token in the reply, or an empty text."""
        parts = urlsplit(f"{self.headend.ssm_url}/v1/sessions/{operation}")
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
        connection.request("POST", parts.path, headers={"nv-authorizations": token})
        reply = json.loads(connection.getresponse().read())
        connection.close()
        return str(reply.get("sessionToken", ""))

    def setup(self, account: str = "account-1") -> str:
        return self.send("setup", self.headend.content_token(account))


@pytest.fixture
def wrong(headend: HeadEnd) -> Wrong:
    return Wrong(headend)


def fails(pattern: str) -> pytest.RaisesExc[AssertionError]:
    return pytest.raises(AssertionError, match=pattern)


def test_rightPlayer_passesEveryCheck(stage: Stage) -> None:
    first = stage.play()
    stage.advance(180_000)
    stage.play()
    stage.advance(60_000)
    expect = stage.expect
    first.close()
    stage.player.stop()
    stage.settle()
    beats = ["heartbeat"] * 3
    expect.routes("setup", *beats, "teardown", "setup", "heartbeat", "teardown")
    expect.heartbeats(4, every_ms=60_000)
    expect.tokens_fresh()
    expect.teardown_before_setup()
    expect.sessions(0)
    expect.torn_down()
    expect.clean()


def test_tokensFresh_sameTokenTwice_saysSoAndMarksBothRows(wrong: Wrong, expect: Expectations) -> None:
    token = wrong.setup()
    for _ in range(2):
        wrong.headend.advance(60_000)
        wrong.send("heartbeat", token)
    with fails(r"^two heartbeats carried the same token: S:\S+#1, although the reply to request 2 had") as caught:
        expect.tokens_fresh()
    lines = str(caught.value).splitlines()[1:]
    assert [line[:4] for line in lines] == ["  # ", "  1 ", "> 2 ", "> 3 "]


def test_tokensFresh_olderTokenLater_saysSo(wrong: Wrong, expect: Expectations) -> None:
    first = wrong.setup()
    second = wrong.send("heartbeat", first)
    wrong.send("heartbeat", second)
    wrong.send("teardown", first)
    with fails("a request carried an old token: teardown with"):
        expect.tokens_fresh()


def test_routes_other_namesTheFirstDifference(wrong: Wrong, expect: Expectations) -> None:
    token = wrong.setup()
    wrong.send("heartbeat", token)
    with fails("after request 1: no teardown arrived; after request 1: heartbeat arrived, which the test does not"):
        expect.routes("setup", "teardown")
    with fails("after request 2: no teardown arrived"):
        expect.routes("setup", "heartbeat", "teardown")
    with fails("at the start: setup, heartbeat arrived"):
        expect.routes()


def test_heartbeats_lateOrMissing_saysWhen(wrong: Wrong, expect: Expectations) -> None:
    token = wrong.setup()
    with fails("0 keep-alives arrived, not 1"):
        expect.heartbeats(1)
    wrong.headend.advance(75_000)
    wrong.send("heartbeat", token)
    expect.heartbeats(1, every_ms=60_000, within_ms=15_000)
    with fails("request 2 arrived 75 s after the session began, not 60 s"):
        expect.heartbeats(1, every_ms=60_000)
    with fails("1 rule broken: request 2: heartbeat of S:"):
        expect.clean()


def test_refused_otherCode_listsTheAnswers(wrong: Wrong, expect: Expectations) -> None:
    for _ in range(3):
        wrong.setup()
    expect.refused("setup", 1007)
    with fails(r"expected 2 setups refused with code 1007, but 1 was: request 1: status 200, request 2"):
        expect.refused("setup", 1007, times=2)
    with fails("but 0 was: no teardown arrived"):
        expect.refused("teardown")


def test_tornDown_heldOrExpired_namesTheSession(wrong: Wrong, expect: Expectations) -> None:
    wrong.setup("alice")
    expect.sessions(1, account="alice")
    with fails(r"the head-end holds 1 session of alice, not 0: \S+ of alice"):
        expect.sessions(0, account="alice")
    with fails(r"no teardown ended the session \S+ of alice: it is still held"):
        expect.torn_down()
    wrong.headend.advance(3_600_000)
    with fails("it has ended: expired"):
        expect.torn_down()


def test_tornDown_requestAfterIt_saysSo(wrong: Wrong, expect: Expectations) -> None:
    token = wrong.setup()
    wrong.send("teardown", token)
    expect.torn_down()
    wrong.send("heartbeat", token)
    with fails("a request followed the teardown: heartbeat with"):
        expect.torn_down()


def test_teardownBeforeSetup_otherOrder_namesBothSetups(wrong: Wrong, expect: Expectations) -> None:
    first = wrong.setup()
    wrong.setup()
    wrong.send("teardown", first)
    with fails("set-up 2 arrived before the teardown of the session that set-up 1 opened"):
        expect.teardown_before_setup()


def test_longJournal_showsTheRowsAroundTheMark(wrong: Wrong, expect: Expectations) -> None:
    token = wrong.setup()
    for _ in range(60):
        token = wrong.send("heartbeat", token)
    wrong.send("heartbeat", "nonsense")
    with fails(r"… and \d+ more requests") as caught:
        expect.routes("setup", *["heartbeat"] * 60)
    assert "> 62" in str(caught.value) and len(str(caught.value).splitlines()) < 45
