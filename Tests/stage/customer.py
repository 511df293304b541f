"""Parts that the stories of customer SSM share: a delegate that records its calls, and two answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import usher
from stage import Stage

Response = usher.LicenseResponse


class Portal(usher.CustomerDelegate):
    """The callbacks of a host with its own session management. They record the calls, and answer as the story
    configures them."""

    def __init__(self, stage: Stage, *answers: Any, **options: Any) -> None:
        self.headend, self.start_ms = stage.headend, stage.headend.now_ms
        self.asked: list[tuple[str, int]] = []
        self.answers = list(answers)
        self.heartbeats: list[Any] = []
        self.ends: Callable[[usher.SessionCall], Any] = lambda call: None
        self.license_requests: list[usher.CustomerRequest] = []
        options.setdefault("jitter_permille", usher.OFF)
        super().__init__(stage.context, **options)

    def license(self, request: usher.CustomerRequest) -> Any:
        self.note("license" if request.type is usher.LicenseType.REQUEST else "renewal")
        self.license_requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(request) if callable(answer) else answer

    def heartbeat(self, call: usher.SessionCall) -> Any:
        self.note("heartbeat")
        answer = self.heartbeats.pop(0) if self.heartbeats else None
        return answer(call) if callable(answer) else answer

    def teardown(self, call: usher.SessionCall) -> Any:
        self.note("teardown")
        return self.ends(call)

    def note(self, name: str) -> None:
        self.asked.append((name, self.headend.now_ms - self.start_ms))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asked]


BEATS = Response(b"licence", heartbeat_s=60, renew_type=usher.RenewType.HEARTBEAT)
RENEWALS = Response(b"licence", heartbeat_s=60)


def play(stage: Stage, delegate: usher.Delegate, player: usher.Player | None = None, **options: Any) -> usher.Playback:
    playback = (player or stage.player).play(delegate=delegate, **options)
    stage._playbacks.append(playback)
    return playback
