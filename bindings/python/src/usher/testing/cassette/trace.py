"""Makes a cassette from a trace of the library. A trace has no tokens, so this module infers their names. It assumes
that a playback sends its content token with set-up and licence requests, and that every request after set-up also has
the newest session token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .format import Cassette, CassetteError, Exchange

_OPERATIONS = ("set-up", "heartbeat", "teardown", "licence", "certificate")


def from_trace(path: Path) -> Cassette:
    """Returns the cassette of a trace. Skips the lines of the file that do not belong to the trace.

    Raises:
        CassetteError: the file has no request.
        OSError: the file cannot be read.
    """
    requests: dict[int, dict[str, Any]] = {}
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        line = _line(text)
        if line.get("kind") == "request":
            requests[line["request"]] = {**line, "reply": None, "event": {}}
        elif line.get("kind") == "reply" and line.get("request") in requests:
            requests[line["request"]]["reply"] = line
        elif line.get("kind") == "event":
            _explain(requests, line)
    if not requests:
        raise CassetteError(f"{path} has no request of a trace")
    start = next(iter(requests.values()))["t_ms"]
    sessions = _Sessions()
    return Cassette(tuple(sessions.exchange(one, start) for one in requests.values()), "trace")


def _line(text: str) -> dict[str, Any]:
    begin = text.find('{"t_ms"')
    try:
        value = json.loads(text[begin:]) if begin >= 0 else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _explain(requests: dict[int, dict[str, Any]], event: dict[str, Any]) -> None:
    """Adds the fields of an event to the newest answered request of the event's playback. Fields that this request has
    from an earlier event keep their values."""
    for one in reversed(requests.values()):
        if one.get("playback") == event.get("playback") and one["reply"] is not None:
            one["event"] = {**event, **one["event"]}
            return


class _Sessions:
    def __init__(self) -> None:
        self._playbacks: dict[int, int] = {}
        self._sessions: dict[int, int] = {}
        self._tokens: dict[int, int] = {}

    def exchange(self, one: dict[str, Any], start: int) -> Exchange:
        playback, operation = one.get("playback", 0), one["operation"]
        operation = operation if operation in _OPERATIONS else "other"
        if operation == "licence" and one.get("keep_alive"):
            operation = "renewal"
        reply = one["reply"]
        status = None if reply is None else reply.get("http_status")
        size = 0 if reply is None else reply.get("bytes", 0)
        content = f"C{self._playbacks.setdefault(playback, len(self._playbacks) + 1)}"
        held = self._name(playback)
        tokens = {"set-up": (content,), "licence": (content, held) if held else (content,)}.get(
            operation, (held,) if held else ()
        )
        members: dict[str, int | float | bool | str] = {}
        event = one["event"]
        if status == 200 and operation in ("set-up", "heartbeat", "renewal"):
            if operation == "set-up":
                self._sessions[playback] = len(self._sessions) + 1
                self._tokens[playback] = 0
                members["heartbeat"] = event.get("period_ms", 60_000) / 1000
            if playback in self._tokens:
                self._tokens[playback] += 1
                members["sessionToken"] = self._name(playback) or ""
        elif status is not None and status >= 400 and "service_code" in event:
            members["errorCode"] = event["service_code"]
        return Exchange(
            at_ms=one["t_ms"] - start,
            operation=operation,
            tokens=tuple(tokens) if operation not in ("certificate", "other") else (),
            took_ms=0 if reply is None else reply["t_ms"] - one["t_ms"],
            status=status,
            body="json" if size else "empty",
            size=size,
            members=members,
        )

    def _name(self, playback: int) -> str | None:
        count = self._tokens.get(playback)
        return None if count is None else f"S{self._sessions[playback]}#{count}"
