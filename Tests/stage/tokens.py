"""Playbacks with a token callback."""

from __future__ import annotations

from typing import Any

import usher
from stage import HEADER, Stage


class Tokens:
    """A token callback that records its calls. It first returns the values of `answers`, one for each call, and then a
    new token for each call.

    hold: if True, the callback stores every request and does not answer it.
    single_use: if True, each token is valid for only one licence.
    """

    def __init__(self, stage: Stage, *answers: Any, hold: bool = False, single_use: bool = False) -> None:
        self.stage, self.answers, self.hold, self.single_use = stage, list(answers), hold, single_use
        self.given: list[str] = []
        self.requests: list[usher.TokenRequest] = []

    def __call__(self, request: usher.TokenRequest) -> Any:
        self.requests.append(request)
        if self.hold:
            return usher.LATER
        if self.answers:
            return self.answers.pop(0)
        serial = f"token-{len(self.requests)}"
        self.given.append(self.stage.headend.content_token(jti=serial if self.single_use else None, serial=serial))
        return self.given[-1]


FRESH = "a fresh one"


def played(stage: Stage, tokens: Any, token: str | None = FRESH, **options: Any) -> usher.Playback:
    """Starts a playback with this token callback, waits for its set-up, and returns the playback. If `token` is None,
    the library asks the callback for a token."""
    if token is FRESH:
        token = stage.headend.content_token()
    playback = stage.player.play(token, delegate=stage.delegate(token_callback=tokens, **options))
    stage._playbacks.append(playback)
    stage.settle()
    return playback


def sent_tokens(stage: Stage, route: str) -> list[str]:
    """Returns the content token of each request to the route."""
    return [(entry.header(HEADER) or "").split(",")[0] for entry in stage.sent(route)]
