"""No log line, event, error or repr of an object contains a token, licence, key or payload."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from told import Told, spelled

import usher
from stage import KEY, KID, Stage
from usher.testing.headend import Fault, HeadEnd

KEYS = spelled("content key", KEY)
SPELLINGS: dict[str, Callable[[str], str]] = {
    "whole": lambda token: token,
    "in a sentence": lambda token: f"token '{token}' is not known",
    "its end": lambda token: f"…{token[len(token) // 3 :]}",
    "its middle": lambda token: f"at {token[len(token) // 6 : -(len(token) // 6)]}:",
    "in quotes and lines": lambda token: f'"{token}"\r\n\t{token}\0',
    "in a URL": lambda token: f"https://tenant.example.invalid/x?token={token}&y=1",
    "late": lambda token: "x " * 300 + token,
}
"""The forms in which a server may repeat a token in its error message."""


def session_tokens(headend: HeadEnd) -> dict[str, str]:
    """Returns the session tokens that the library sent, each with a name."""
    sent = {part.raw for entry in headend.journal for part in entry.parts if part.kind == "session"}
    assert sent, headend.journal.dump()
    return {f"token {number}": token for number, token in enumerate(sorted(sent))}


@pytest.mark.parametrize("enforced", [frozenset(), frozenset({"clearkey"})], ids=["heartbeats", "renewals"])
def test_secrets_ofASession_areInNothingThatIsTold(
    stage_factory: Callable[..., Stage], enforced: frozenset[str]
) -> None:
    stage = stage_factory(headend={"enforced": enforced})
    told, header, payload = Told(), secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    token = stage.headend.content_token(marker=secrets.token_hex(16))
    challenge = usher.clear_key_request([KID])

    def renew(request: usher.PayloadRequest) -> bytes:
        told.add(request)
        return challenge

    def ask(request: usher.TokenRequest) -> str:
        told.add(request)
        return token

    delegate = stage.delegate(extra_headers=f"x-api-key: {header}", token_callback=ask)
    playback = stage.player.play(None, delegate=delegate, payload=renew, tag="a")
    stage.settle()
    licence = playback.get_license(usher.KeySystem.CLEARKEY, challenge)
    stage.advance(130_000)
    told.add(licence, playback, stage.player, delegate, stage.context)
    with pytest.raises(usher.RefusedError) as refused:
        playback.get_license(usher.KeySystem.CLEARKEY, payload.encode())
    told.add(refused.value)
    stage.headend.faults.add("setup", Fault.error(1003, message=f"{token} {header}"))
    stage.play(token, player=usher.Player(stage.context), tag="b")
    stage.settle()
    playback.close()
    stage.settle()
    told.add_stage(stage)
    assert {"SESSION_STARTED", "LICENSE", "KEPT_ALIVE", "LICENSE_ERROR", "SETUP_ERROR", "PLAYBACK_CLOSED"} <= set(
        stage.events.types()
    )
    told.check({"content token": token, "payload": payload, **KEYS, **session_tokens(stage.headend)})


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("status", [200, 400, 403, 500, 503])
def test_tokens_thatServersSayBack_areTakenOut(stage: Stage, status: int, spelling: str) -> None:
    told, headend = Told(), stage.headend
    token = headend.content_token(marker=secrets.token_hex(16))
    playback = stage.play(token, tag="a")
    stage.settle()
    session = headend._service.session_token(headend.sessions.only())
    for route in ("license", "heartbeat", "teardown", "setup"):
        sent = token if route in ("license", "setup") else session
        body = {"errorCode": 1003, "message": SPELLINGS[spelling](sent), "sent": sent}
        headend.faults.add(route, Fault.reply(status, body=body, headers={"X-Sent": sent}), always=True)
    with pytest.raises(usher.UsherError) as refused:
        playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]))
    told.add(refused.value)
    stage.advance(200_000)
    playback.close()
    stage.play(token, player=usher.Player(stage.context), tag="b")
    stage.advance(200_000)
    told.add_stage(stage)
    assert "SETUP_ERROR" in stage.events.types("b") and "HEARTBEAT_ERROR" in stage.events.types("a")
    told.check({"content token": token, "session token": session})
