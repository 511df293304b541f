"""Plays a short piece of chaos (chaos.py), and tests its judge and its plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from chaos_plan import CALM_S, KINDS, draw
from chaos_verdict import PERIOD_MS, Calm, Watch, late_beats, lost_sessions

import usher
from usher import OFF
from usher.testing.headend import HeadEnd

TROUBLES = [
    {"kind": "partition", "at_s": 1.0, "lasts_s": 3.0},
    {"kind": "move", "at_s": 5.0, "lasts_s": 0.0},
    {"kind": "restart, table kept", "at_s": 7.0, "lasts_s": 1.0},
    {"kind": "stop", "at_s": 9.0, "lasts_s": 1.5},
    {"kind": "kill", "at_s": 12.0, "lasts_s": 0.0},
]
SHORT = {"seconds": 15.0, "seed": 0, "playbacks": 8, "troubles": TROUBLES}


@pytest.mark.in_world("chaos.py", json.dumps(SHORT))
def test_sessions_throughAShortChaos_areKeptAndNothingIsUntold(printed: str) -> None:
    """The network is partitioned for 3 s, the host's side gets another address, the head-end restarts, and signals stop
    and then kill the host. While the host lives, it loses no session; every refusal and every end has an event."""
    found: dict[str, Any] = json.loads(printed)
    assert (found["lost"], found["lost, by cause"], found["untold"]) == ([], {}, []), found
    assert found["kills"] == 1 and found["sessions"] >= SHORT["playbacks"], found
    assert found["slots left"] == SHORT["playbacks"], "nothing gives the slots of a dead host back"


WITHOUT_RETRIES = {
    "seconds": 14.0,
    "seed": 0,
    "playbacks": 8,
    "troubles": [{"kind": "partition", "at_s": 1.0, "lasts_s": 5.0}],
    "delegate": {"retry_permille": OFF, "jitter_permille": OFF},
}


@pytest.mark.in_world("chaos.py", json.dumps(WITHOUT_RETRIES))
def test_judge_ofAHostThatDoesNotRetry_findsTheLostSessions(printed: str) -> None:
    """The first heartbeats are lost in a partition, and the library does not retry them. Although everything works
    again seconds before the leases end, the sessions are lost. The judge finds these losses, and finds that the host
    was told of each."""
    found: dict[str, Any] = json.loads(printed)
    assert len(found["lost"]) == WITHOUT_RETRIES["playbacks"], found
    assert found["untold"] == [], found


def test_plan_withTheSameSeed_isTheSame() -> None:
    assert draw(7, 600) == draw(7, 600) != draw(8, 600)


@pytest.mark.parametrize("seconds", [60, 1200])
def test_plan_hasAKillEachMinuteAndCalmBetweenTroubles(seconds: float) -> None:
    troubles = draw(1, seconds)
    assert sum(trouble.kind == "kill" for trouble in troubles) >= seconds // 120
    for one, next_one in pairwise(troubles):
        assert next_one.at_s >= one.at_s + one.lasts_s + CALM_S
    assert seconds < 1200 or {trouble.kind for trouble in troubles} == {kind for kind, _, _ in KINDS} | {"kill"}


@pytest.fixture
def watched() -> Iterator[tuple[Watch, usher.Playback, usher.Context]]:
    """A playback with a session, and a watch that sees it. The clocks of head-end and library stand still."""
    with (
        HeadEnd(clock="manual", period_s=PERIOD_MS // 1000, grace=100, limit=1) as headend,
        usher.Context(clock="manual", proxy="") as context,
    ):
        delegate = usher.SSPDelegate(
            context, license_url=headend.license_url("clearkey"), ssm_url=headend.ssm_url, jitter_permille=OFF
        )
        watch = Watch(headend, 1)
        watch.begin_life(watch.ours(headend.clock.now_ms()))
        playback = usher.Player(context).play(headend.content_token(account="account-0"), delegate=delegate)
        playback.wait_session()
        started = {"type": "SESSION_STARTED", "at_ms": watch.lives[-1].born_ms, "is_over": False, "lateness_ms": 0}
        watch.event({"index": 0, **started})
        yield watch, playback, context


def test_judge_ofABeatThatTheHeadEndGotLate_findsIt(watched: tuple[Watch, usher.Playback, usher.Context]) -> None:
    """The library says that its heartbeat is on time, but the head-end got it 1.5 s late."""
    watch, _, context = watched
    watch.headend.advance(PERIOD_MS + 1500)
    context.advance(PERIOD_MS, settle_ms=5000)
    late = list(late_beats(watch, Calm()))
    assert len(late) == 1 and "1500 ms late" in late[0], late


def test_judge_ofASessionTornDownWhileItsHostPlays_findsIt(
    watched: tuple[Watch, usher.Playback, usher.Context],
) -> None:
    """Nobody told the judge that the host closes the playback, so the teardown ends a session that the host holds."""
    watch, playback, _ = watched
    playback.close()
    playback.wait_closed()
    assert [(lost.index, lost.why) for lost in lost_sessions(watch, Calm())] == [(0, "reachable")]


@pytest.mark.parametrize(("lost_replies", "is_calm"), [(1, False), (2, False), (2, True)])
def test_judge_ofARefusedToken_excusesItOnlyAfterTwoLostReplies(
    watched: tuple[Watch, usher.Playback, usher.Context], lost_replies: int, is_calm: bool
) -> None:
    """The head-end has refused the host's token. That is an excuse only if the replies with two newer tokens did not
    arrive, and something was broken meanwhile."""
    watch, _, context = watched
    for _ in range(lost_replies):
        watch.headend.advance(PERIOD_MS)
        context.advance(PERIOD_MS, settle_ms=5000)
    watch.headend.advance(PERIOD_MS)
    at_ms = watch.ours(watch.headend.clock.now_ms())
    watch.event({"index": 0, "type": "HEARTBEAT_ERROR", "at_ms": at_ms, "is_over": True, "code": 1006})
    watch.headend.advance(200 * PERIOD_MS)
    calm = Calm()
    if not is_calm:
        calm.troubles.append((at_ms - PERIOD_MS, at_ms - 1, "loss"))
    why = "replies" if lost_replies == 2 and not is_calm else "reachable"
    assert [lost.why for lost in lost_sessions(watch, calm)] == [why]
