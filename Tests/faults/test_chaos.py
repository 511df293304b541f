"""Plays a short piece of chaos (chaos.py), and tests its judge and its plan."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from chaos_plan import CALM_S, KINDS, draw

from usher import OFF

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
