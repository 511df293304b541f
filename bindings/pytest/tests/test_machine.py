"""Tests the state machine: the library passes, and planted mistakes of a player are found."""

from __future__ import annotations

import http.client
import json
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from pytest_usher.machine import Host, SessionMachine
from pytest_usher.strategies import fault_scripts
from usher.testing.headend import HeadEnd
from usher.testing.headend.network.script import FaultScript

from hypothesis import given  # isort: skip

QUICK = settings(
    max_examples=15, stateful_step_count=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
PLANTED = settings(QUICK, max_examples=200, phases=[Phase.generate], report_multiple_bugs=False)

Mistake = Literal["none", "old-token", "no-teardown", "late"]


class PlainHost:
    """A small player over plain HTTP, with one planted mistake."""

    def __init__(self, headend: HeadEnd, mistake: Mistake) -> None:
        self.headend, self.mistake = headend, mistake
        self.tokens: dict[str, str] = {}
        self.due: dict[str, int] = {}

    def play(self, screen: str, token: str) -> None:
        self.stop(screen)
        reply = self.send("setup", token)
        if reply.get("sessionToken"):
            self.tokens[screen] = reply["sessionToken"]
            self.due[screen] = self.headend.now_ms + self.headend.config.period_ms

    def stop(self, screen: str) -> None:
        token = self.tokens.pop(screen, None)
        if token is not None and self.mistake != "no-teardown":
            self.send("teardown", token)

    def advance(self, ms: int) -> None:
        end = self.headend.now_ms + ms
        while self.headend.now_ms < end:
            due = min([end, *(self.due[screen] for screen in self.tokens)])
            self.headend.advance(max(0, due - self.headend.now_ms))
            for screen in [screen for screen in self.tokens if self.due[screen] <= self.headend.now_ms]:
                self.beat(screen)

    def beat(self, screen: str) -> None:
        reply = self.send("heartbeat", self.tokens[screen])
        if "sessionToken" not in reply:
            del self.tokens[screen]
        elif self.mistake != "old-token":
            self.tokens[screen] = reply["sessionToken"]
        late_ms = 1000 if self.mistake == "late" else 0
        self.due[screen] = self.headend.now_ms + self.headend.config.period_ms + late_ms

    def close(self) -> None:
        for screen in list(self.tokens):
            self.stop(screen)

    def send(self, operation: str, token: str) -> dict[str, Any]:
        parts = urlsplit(f"{self.headend.ssm_url}/v1/sessions/{operation}")
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
        try:
            connection.request("POST", parts.path, headers={"nv-authorizations": token})
            reply = json.loads(connection.getresponse().read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError):
            return {}
        finally:
            connection.close()
        return dict(reply) if isinstance(reply, dict) else {}


def machine_with(mistake: Mistake) -> type[SessionMachine]:
    class Planted(SessionMachine):
        def make_host(self) -> Host:
            return PlainHost(self.headend, mistake)

    return Planted


def test_machine_library_keepsEveryRule() -> None:
    run_state_machine_as_test(SessionMachine, settings=QUICK)


def test_machine_rightPlainPlayer_passes() -> None:
    run_state_machine_as_test(machine_with("none"), settings=QUICK)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("old-token", "the client had S:"),
        ("no-teardown", "the player has not given back"),
        ("late", "1000 ms late"),
    ],
)
def test_machine_plantedMistake_isFoundAndNamed(mistake: Mistake, words: str) -> None:
    with pytest.raises(AssertionError, match=words) as caught:
        run_state_machine_as_test(machine_with(mistake), settings=PLANTED)
    assert "\n> " in str(caught.value)


@given(script=fault_scripts())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_faultScripts_everyScript_canBeLoaded(script: list[dict[str, Any]]) -> None:
    made = FaultScript()
    made.load(json.loads(json.dumps(script)))
    assert made.pending == sum(line["times"] for line in script)
