"""The steps of a scene: read from the calls and traces of its hosts, and from the journal of its head-end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import usher
from pytest_usher.stage import Stage
from usher.testing.headend import Entry, HeadEnd

T = TypeVar("T")
Line = dict[str, Any]
"""A line of a recording: a line of a trace (docs/traces.md), or a call of the host."""

PLAYER, LIBRARY, SSM, LICENCES, GUARDIAN = "player", "libusher", "SSM", "licence server", "guardian"
SERVERS = {
    **dict.fromkeys(("setup", "heartbeat", "teardown", "renewal-wv"), SSM),
    **dict.fromkeys(("license", "license-renewal", "certificate"), LICENCES),
}
"""The server that answers the requests of a route of the head-end's journal."""


@dataclass(frozen=True)
class Step:
    """One row of a picture.

    Attributes:
        kind: a message from `sender` to `receiver`; or "time": time passes; or "death" and "birth": the process of the
            lanes `sender` and `receiver` dies, or starts.
        text: a function, an event, an operation or an HTTP status.
        detail: what the message carries.
        failed: whether the message reports a failure.
    """

    kind: Literal["call", "return", "request", "reply", "event", "time", "death", "birth"]
    sender: str
    receiver: str
    text: str
    detail: str = ""
    failed: bool = False

    def __str__(self) -> str:
        way = f"{self.sender} → {self.receiver}: " if self.kind not in ("time", "death", "birth") else ""
        return f"{way}{self.text}{f' ({self.detail})' if self.detail else ''}"


class Recording:
    """What one host does, in order: its calls, and the lines of the trace of its context."""

    def __init__(self, trace: list[str], settle: Callable[[], None]) -> None:
        self._trace = trace
        self._settle = settle
        self._read = 0
        self._lines: list[Line] = []

    def take(self) -> list[Line]:
        """Waits until the library has no work left. Returns the lines since the last call."""
        self._settle()
        new = self._trace[self._read :]
        self._read += len(new)
        lines, self._lines = [*self._lines, *map(json.loads, new)], []
        return lines

    def call(self, function: str, run: Callable[[], T], takes: str = "", gives: str = "") -> T | None:
        """Calls a function of the library through its Python binding.

        Args:
            function: the name of the function in C.
            takes: what the host passes to the function.
            gives: what the function returns, if the host waits for it.
        """
        self._lines.append({"kind": "call", "function": function, "takes": takes})
        result, failure = None, ""
        try:
            result = run()
        except usher.UsherError as error:
            failure = f"USHER_E_{error.status.name}"
        self._lines = self.take()
        if gives or failure:
            self._lines.append({"kind": "return", "gives": failure or gives, "failed": bool(failure)})
        return result


class Scene:
    """Hosts and a head-end, and the steps that they have made. The picture has a lane for each of `lanes`."""

    def __init__(self, headend: HeadEnd, lanes: tuple[str, ...] = (PLAYER, LIBRARY, SSM, LICENCES)) -> None:
        self.headend = headend
        self.lanes = lanes
        self.steps: list[Step] = []
        self._numbers: dict[tuple[str, int], int] = {}
        """The journal's number of each request, by the library's lane and the number of the request in its trace."""
        self._newest = 0
        """The number that the newest request has in its trace."""
        self._sessions: dict[str | None, str] = {}
        """The letter that a session has in the picture, by the session's id at the head-end."""

    def add(self, lines: Iterable[Line], player: str = PLAYER, library: str = LIBRARY) -> None:
        """Adds the steps of a recording."""
        for line in lines:
            kind = line["kind"]
            if kind == "call":
                self.steps.append(Step("call", player, library, f"{line['function']}()", line["takes"]))
            elif kind == "return":
                self.steps.append(Step("return", library, player, line["gives"], failed=line["failed"]))
            elif kind == "event":
                self.steps.append(_event(line, player, library))
            elif kind == "request":
                entry = self._entry_of(line)
                self._newest = line["request"]
                self._numbers[library, line["request"]] = entry.number
                self.steps.append(self._request(entry, library, line["operation"]))
            elif kind == "reply":
                entry = self._entry(self._numbers[library, line["request"]])
                if entry.status != line.get("http_status"):
                    raise ValueError(f"the head-end sent {entry.status}, the library got {line}")
                step = self._reply(entry, library)
                if line["request"] != self._newest:  # without the name, the reply would seem to answer another request
                    step = replace(step, detail=", ".join([f"to {entry.route}", *filter(None, [step.detail])]))
                self.steps.append(step)

    def add_unasked(self, sender: str) -> None:
        """Adds the requests that the journal has but no trace has. `sender`, which is no host, has sent them."""
        known = {*self._numbers.values()}
        for entry in self.headend.journal.entries(answered=True):
            if entry.number not in known:
                self._numbers[sender, entry.number] = entry.number
                self.steps += [self._request(entry, sender, entry.route), self._reply(entry, sender)]

    def note(self, kind: Literal["time", "death", "birth"], text: str, detail: str = "") -> None:
        self.steps.append(Step(kind, PLAYER, LIBRARY, text, detail))

    def _entry_of(self, line: Line) -> Entry:
        """Returns the journal's entry of a request in a trace; both have the same header `traceparent`."""
        for entry in self.headend.journal:
            if entry.trace_parent == line["traceparent"]:
                return entry
        raise ValueError(f"the journal of the head-end has no such request: {line}\n{self.headend.journal.dump()}")

    def _entry(self, number: int) -> Entry:
        entry = self.headend.journal.get(number)
        if entry is None:
            raise ValueError(f"the journal of the head-end has no request {number}")
        return entry

    def _session_token(self, session: str | None, number: int | None) -> str:
        """Returns the name of a session token in the picture: A1 is the first token of the first session, B2 the second
        token of the second session."""
        letter = self._sessions.setdefault(session, "ABCDEFGH"[len(self._sessions)])
        return f"session token {letter}{number}"

    def _request(self, entry: Entry, sender: str, operation: str) -> Step:
        carried = [
            self._session_token(part.jti, part.seq) if part.kind == "session" else f"{part.kind} token"
            for part in entry.parts
        ]
        return Step("request", sender, SERVERS[entry.route], operation, ", ".join(carried))

    def _reply(self, entry: Entry, receiver: str) -> Step:
        if entry.error_code is not None:
            brought = [f"code {entry.error_code}"]
        else:
            brought = ["licence"] if entry.route == "license" else []
        if entry.issued is not None:
            brought.append(self._session_token(entry.session, entry.issued))
        failed = entry.error_code is not None
        return Step("reply", SERVERS[entry.route], receiver, str(entry.status), ", ".join(brought), failed)


class Host:
    """A host of a scene, with a context of its own."""

    def __init__(self, scene: Scene, player: str = PLAYER, library: str = LIBRARY) -> None:
        self.stage = Stage(scene.headend, trace_context=True)
        self._scene = scene
        self._lanes = (player, library)
        self._recording = Recording(self.stage.trace, self.stage.settle)

    def call(self, function: str, run: Callable[[], T], takes: str = "", gives: str = "") -> T | None:
        """Calls a function as ``Recording.call`` does, adds the steps to the scene, and returns the result of the
        function."""
        result = self._recording.call(function, run, takes, gives)
        self.show()
        return result

    def show(self) -> None:
        """Adds what the library has done since the last call."""
        self._scene.add(self._recording.take(), *self._lanes)

    def play(self, **options: Any) -> usher.Playback:
        """Starts an item, and returns its playback. The session of the item begins with set-up, or with the first
        licence request."""
        playback = self.call("usher_player_play", lambda: self.stage.play(**options), "content token")
        if playback is None:
            raise ValueError("usher_player_play() failed")
        return playback

    def license(self, playback: usher.Playback) -> None:
        self.call("usher_playback_get_license", lambda: self.stage.clear_keys(playback), "payload", "licence")

    def close(self, playback: usher.Playback, mode: usher.CloseMode = usher.CloseMode.DEFAULT) -> None:
        takes = "" if mode is usher.CloseMode.DEFAULT else f"USHER_CLOSE_{mode.name}"
        self.call("usher_playback_close", lambda: playback.close(mode), takes)


def end(*hosts: Host) -> None:
    """Ends all hosts of a head-end. The head-end must then hold no session, and the hosts' requests must have kept all
    rules of the protocol."""
    for host in hosts:
        host.stage.close()
    for host in hosts:
        host.stage.check_end()


def _event(line: Line, player: str, library: str) -> Step:
    details = []
    if line["event"] == "SESSION_STARTED":
        details.append(f"period {line['period_ms'] / 1000:g} s")
    if "status" in line:
        details += [line["status"], *(["must_stop"] if line.get("must_stop") else [])]
    return Step("event", library, player, line["event"], ", ".join(details), "status" in line)
