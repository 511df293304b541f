"""Collects all text that a host may have printed, and searches it for secrets."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Mapping
from urllib.parse import quote

import usher
from stage import Stage

SLICE = 16


class Told:
    """All text that a host may have printed."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, *things: object) -> None:
        for thing in things:
            self.lines += [repr(thing), str(thing)]
            if isinstance(thing, BaseException):
                self.lines += [repr(thing.args), repr(vars(thing)), *traceback.format_exception(thing)]
            if isinstance(thing, usher.UsherError):
                self.lines += [thing.message, repr(thing.explain())]

    def add_stage(self, stage: Stage) -> None:
        self.add(*stage.events.all(), *(event.error for event in stage.events.all() if event.error is not None))
        self.lines += stage.logs + stage.trace

    def check(self, secret: Mapping[str, str]) -> None:
        """Checks that no line contains 16 consecutive characters of a secret, or 8 consecutive characters of a short
        opaque token. The first 40 letters of a JWT are public, so they may occur."""
        text = "\n".join(self.lines)
        assert len(self.lines) > 20, text
        for name, value in secret.items():
            size = SLICE if len(value) > 2 * SLICE else SLICE // 2
            assert len(value) >= size, f"{name} is too short for the search"
            for at in range(40 if value.startswith("eyJ") else 0, len(value) - size + 1):
                part = value[at : at + size]
                assert part not in text, f"{name}: {part!r} in {next(line for line in self.lines if part in line)!r}"


def letters(text: str) -> str:
    """Returns only the letters and digits of a text, in lower case."""
    return "".join(c for c in text.lower() if c.isascii() and c.isalnum())


def spelled(name: str, secret: bytes) -> dict[str, str]:
    """Returns the forms in which a host may print these bytes."""
    plain = base64.b64encode(secret).decode().rstrip("=")
    url = base64.urlsafe_b64encode(secret).decode().rstrip("=")
    return {
        f"{name} in hex": secret.hex(),
        f"{name} in base64": plain,
        f"{name} in base64url": url,
        f"{name} as Python": repr(secret),
        f"{name} quoted": quote(plain),
    }
