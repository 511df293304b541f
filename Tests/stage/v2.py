"""Parts that the stories of SSP V2 share: a delegate, payloads of every key system, and a function that gets a
licence."""

from __future__ import annotations

from typing import Any

import usher
from stage import KID, Stage
from usher.testing.headend import KeySystem

SYSTEMS: dict[KeySystem, usher.KeySystem] = {
    "clearkey": usher.KeySystem.CLEARKEY,
    "fairplay": usher.KeySystem.FAIRPLAY,
    "playready": usher.KeySystem.PLAYREADY,
    "widevine": usher.KeySystem.WIDEVINE,
}
PAYLOAD: dict[KeySystem, bytes] = {
    "clearkey": usher.clear_key_request([KID]),
    "fairplay": bytes(range(256)) * 8,
    "playready": b"<soap:Envelope>\xc3\xa9</soap:Envelope>",
    "widevine": b"\x08\x01\x12" + bytes(range(256)),
}


def delegate(stage: Stage, key_system: KeySystem = "clearkey", **options: Any) -> usher.SSPV2Delegate:
    """Makes a V2 delegate of this head-end, without jitter."""
    options.setdefault("license_url", stage.headend.license_url(key_system, api="v2"))
    options.setdefault("ssm_url", stage.headend.ssm_url)
    options.setdefault("jitter_permille", usher.OFF)
    return usher.SSPV2Delegate(stage.context, **options)


PLAYBACK_OPTIONS = {"payload", "renewed", "tag", "player", "token"}


def play(stage: Stage, key_system: KeySystem = "clearkey", **options: Any) -> usher.Playback:
    """Starts a playback with a new delegate, and returns the playback. The options are those of the delegate and of
    play()."""
    given = {name: options.pop(name) for name in PLAYBACK_OPTIONS & options.keys()}
    return stage.play(delegate=options.pop("delegate", None) or delegate(stage, key_system, **options), **given)


def licence(playback: usher.Playback, key_system: KeySystem = "clearkey", **options: Any) -> usher.License:
    """Requests a licence, waits for it, and returns it."""
    return playback.get_license(SYSTEMS[key_system], PAYLOAD[key_system], **options)


def ask(playback: usher.Playback, key_system: KeySystem = "clearkey", **options: Any) -> Any:
    """Requests a licence and returns the future."""
    return playback.request_license(SYSTEMS[key_system], PAYLOAD[key_system], **options)
