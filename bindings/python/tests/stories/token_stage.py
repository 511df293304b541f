"""Playbacks with a token callback."""

from __future__ import annotations

from typing import Any

import usher
from stage import HEADER, Stage


class Tokens:
    """A token callback that gives its answers, then a fresh token each time, and notes when it was asked; `hold` keeps all its questions."""

    def __init__(self, stage: Stage, *answers: Any, hold: bool = False) -> None:
        self.stage, self.answers, self.hold = stage, list(answers), hold
        self.given: list[str] = []
        self.requests: list[usher.TokenRequest] = []

    def __call__(self, request: usher.TokenRequest) -> Any:
        self.requests.append(request)
        if self.hold:
            return usher.LATER
        if self.answers:
            return self.answers.pop(0)
        self.given.append(self.stage.headend.content_token(serial=f"token-{len(self.requests)}"))
        return self.given[-1]


def played(stage: Stage, tokens: Any, *token: str | None, **options: Any) -> usher.Playback:
    """A playback with this callback, set up. `token`: default a fresh one; None: the callback is asked for it."""
    initial = token[0] if token else stage.headend.content_token()
    playback = stage.player.play(initial, delegate=stage.delegate(token_callback=tokens, **options))
    stage._playbacks.append(playback)
    stage.settle()
    return playback


def sent_tokens(stage: Stage, route: str) -> list[str]:
    """The content token of each request."""
    return [(entry.header(HEADER) or "").split(",")[0] for entry in stage.sent(route)]
