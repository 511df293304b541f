"""The judge of a run of chaos. It compares what the hosts were told with the head-end's session table and journal, and
with the times at which the network, the head-end and the hosts worked."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from usher.testing.headend import HeadEnd
from usher.testing.headend.state.sessions import Session, SessionState

PERIOD_MS = 5000
LATE_MS = 500
REACHABLE_MS = 1000
"""A session counts as reachable before its lease ended if everything worked for the last second of the lease."""
NOTICE_MS = 2 * PERIOD_MS + 2000
"""After this time the host must know that the head-end no longer has its session: the library learns it from the reply
to the next heartbeat, and retries a lost heartbeat until the end of the lease."""
LOOK_S = 0.2
ALIVE = ("SESSION_STARTED", "KEPT_ALIVE", "RECOVERED")
"""The events that say that the head-end has accepted the host's newest token."""


def now_ms() -> int:
    """Returns the time of the clock that this process and the hosts share, in ms."""
    return time.monotonic_ns() // 1_000_000


class Calm:
    """Records the times at which something was broken, and says whether everything worked between two instants."""

    def __init__(self) -> None:
        self.troubles: list[tuple[int, int, str]] = []

    @contextlib.contextmanager
    def broken(self, kind: str) -> Iterator[None]:
        since = now_ms()
        try:
            yield
        finally:
            self.troubles.append((since, now_ms(), kind))

    def between(self, since_ms: int, until_ms: int) -> bool:
        """Whether everything worked all the time between these two instants."""
        return not any(since < until_ms and until >= since_ms for since, until, _ in self.troubles)


@dataclass
class Life:
    """The life of one host process."""

    born_ms: int
    closing_ms: int = 1 << 62
    """When the host was told to close its context."""
    died_ms: int = 1 << 62
    is_closed: bool = False
    """Whether the host has closed its context; False: it was killed."""
    events: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    def is_alive(self, at_ms: int) -> bool:
        return self.born_ms <= at_ms < self.died_ms


@dataclass
class Lost:
    """A session that the head-end ended although a living host held it."""

    session: str
    index: int
    at_ms: int
    why: str


class Watch:
    """The records of a run."""

    def __init__(self, headend: HeadEnd, playbacks: int) -> None:
        self.headend = headend
        self.playbacks = playbacks
        self.lives: list[Life] = []
        self.forgotten: dict[str, tuple[Session, int]] = {}
        self.untold: list[str] = []
        self._lock = threading.Lock()
        self._active: dict[int, int] = {}
        """For each playback that has a live session, as its host knows from events: the time of the newest of these
        events."""
        self._alone_since: dict[int, int] = {}
        self._offset_ms = headend.clock.now_ms() - now_ms()

    def ours(self, headend_ms: int) -> int:
        """Converts a time of the head-end's clock to the clock of now_ms(). Returns this time in ms."""
        return headend_ms - self._offset_ms

    # ---- what happens ----------------------------------------------------------------------------------------------

    def begin_life(self, at_ms: int) -> None:
        self.lives.append(Life(at_ms))

    def begin_closing(self, at_ms: int) -> None:
        self.lives[-1].closing_ms = at_ms

    def end_life(self, at_ms: int, *, is_closed: bool = False) -> None:
        self.lives[-1].died_ms, self.lives[-1].is_closed = at_ms, is_closed
        with self._lock:
            self._active.clear()
            self._alone_since.clear()

    def event(self, event: dict[str, Any]) -> None:
        self.lives[-1].events.setdefault(event["index"], []).append(event)
        with self._lock:
            if event["type"] in ALIVE:
                self._active[event["index"]] = event["at_ms"]
            elif event["type"] in ("SESSION_DOUBTFUL", "HEARTBEAT_ERROR", "SESSION_ENDED", "PLAYBACK_CLOSED"):
                self._active.pop(event["index"], None)

    def forgot(self, sessions: list[Session], at_ms: int) -> None:
        """Records the sessions that the head-end lost with its table at this time."""
        self.forgotten.update({session.id: (session, at_ms) for session in sessions})

    def held_by_host(self) -> set[int]:
        """Returns the playbacks of the newest life whose last event says that they have a session."""
        held = set()
        for index, events in self.lives[-1].events.items():
            if _has_session(events):
                held.add(index)
        return held

    def held_by_headend(self) -> set[int]:
        return {index_of(session) for session in self.headend.sessions.active()}

    def look_until(self, end: float) -> None:
        """Compares host and head-end until the monotonic time `end`, in s. Call it only while everything works."""
        calm_since = now_ms()
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(LOOK_S, left))
            self._look(calm_since)

    def _look(self, calm_since: int) -> None:
        held, now = self.held_by_headend(), now_ms()
        with self._lock:
            alone = {index for index in self._active if index not in held}
            self._alone_since = {index: self._alone_since.get(index, now) for index in alone}
            for index, since in self._alone_since.items():
                if since > 0 and now - max(since, calm_since) > NOTICE_MS:
                    self.untold.append(f"playback {index}: its host still believes in a session that is gone")
                    self._alone_since[index] = -1


def index_of(session: Session) -> int:
    return int(session.account.rsplit("-", 1)[1])


def _has_session(events: list[dict[str, Any]]) -> bool:
    """Whether the host has a session after these events of one playback."""
    has = False
    for event in events:
        if event["type"] == "SESSION_STARTED":
            has = True
        elif event["type"] in ("SESSION_ENDED", "PLAYBACK_CLOSED") or event["is_over"]:
            has = False
    return has


def judge(watch: Watch, calm: Calm, slots_left: list[int]) -> dict[str, Any]:
    """Returns the figures of the run: how many hosts the run killed, which sessions were lost, which heartbeats were
    late, and what the hosts were not told."""
    lost = list(lost_sessions(watch, calm))
    late = list(late_beats(watch, calm))
    untold = [*watch.untold, *silent_denials(watch, calm), *silent_ends(watch)]
    told = Counter(event["type"] for life in watch.lives for events in life.events.values() for event in events)
    return {
        "kills": len(slots_left),
        "slots left": sum(slots_left),
        "slots left after each death": slots_left,
        "sessions": told["SESSION_STARTED"],
        "heartbeats": told["KEPT_ALIVE"],
        "lost": [vars(one) for one in lost if one.why == "reachable"],
        "lost, by cause": dict(Counter(one.why for one in lost)),
        "late": late,
        "untold": untold,
        "events": dict(told),
        "broken": [[since, until, kind] for since, until, kind in calm.troubles],
    }


def lost_sessions(watch: Watch, calm: Calm) -> Iterator[Lost]:
    """Returns the sessions that a living host has lost, each with the cause:

    - *table*: the head-end lost its table.
    - *replies*: so many replies were lost that the head-end refuses the newest token that the host has.
    - *unreachable*: something was broken in the last second of the lease.
    - *reachable*: none of the causes above applies. This includes a session that was torn down while its host lived
      and held it.
    """
    for session in watch.headend.sessions.all():
        is_torn_down = session.state is SessionState.TORN_DOWN
        end_ms = watch.ours(session.ended_ms or 0 if is_torn_down else session.expires_ms)
        created_ms = watch.ours(session.created_ms)
        life = next((life for life in watch.lives if life.is_alive(created_ms)), None)
        if life is None or not life.is_alive(end_ms):
            continue
        index = index_of(session)
        events = life.events.get(index, [])
        after = [event for event in events if event["at_ms"] >= created_ms - 50]
        started = next((event for event in after if event["type"] == "SESSION_STARTED"), None)
        over = next((event for event in after if event["is_over"]), None)
        if started is None or (over is not None and over["at_ms"] < started["at_ms"]):
            continue  # the library got no token for this session; the set-up may have failed with an event
        if is_torn_down:
            # The host tears a session down when it closes its context, and when it plays an item again after a loss.
            if end_ms < life.closing_ms and (over is None or over["at_ms"] > end_ms):
                yield Lost(session.id, index, end_ms, "reachable")
        elif over is not None and over["at_ms"] < end_ms:
            is_stale = over["code"] == 1006 and has_lost_replies(watch, calm, session, after, over["at_ms"])
            yield Lost(session.id, index, over["at_ms"], "replies" if is_stale else "reachable")
        elif calm.between(end_ms - REACHABLE_MS, end_ms):
            yield Lost(session.id, index, end_ms, "reachable")
        else:
            yield Lost(session.id, index, end_ms, "unreachable")
    for session, at_ms in watch.forgotten.values():
        yield Lost(session.id, index_of(session), at_ms, "table")


def has_lost_replies(watch: Watch, calm: Calm, session: Session, events: list[dict[str, Any]], over_ms: int) -> bool:
    """Whether two replies in a row with tokens of the session were lost while something was broken: the head-end sent
    them after the last event of a success, and before the loss. Then the head-end no longer accepts the token that the
    host has."""
    successes = [e["at_ms"] for e in events if e["type"] in ALIVE and e["at_ms"] < over_ms]
    last_ms = max(successes, default=watch.ours(session.created_ms))
    if calm.between(last_ms, over_ms):
        return False
    sent = [
        entry
        for entry in watch.headend.journal
        if entry.session == session.id and entry.issued and entry.issued > 1 and entry.answered_ms is not None
    ]
    return sum(last_ms < watch.ours(entry.answered_ms or 0) < over_ms for entry in sent) >= 2


def late_beats(watch: Watch, calm: Calm) -> Iterator[str]:
    """Returns the heartbeats that were late although everything worked: as the library says, from the moment when they
    were due; and by the head-end's journal, since the keep-alive before them."""
    accepted: dict[str, list[int]] = {}
    for entry in watch.headend.journal:
        if entry.session and entry.route in ("setup", "heartbeat") and entry.status == 200:
            accepted.setdefault(entry.session, []).append(watch.ours(entry.at_ms))
    for session, times in accepted.items():
        for before, beat in pairwise(times):
            late = beat - before - PERIOD_MS
            if late > LATE_MS and calm.between(before - LATE_MS, beat):
                yield f"session {session}: {late} ms late at {beat} by the head-end's journal"
    for life in watch.lives:
        for index, events in life.events.items():
            for event in events:
                late = event["lateness_ms"]
                if event["type"] != "KEPT_ALIVE" or late <= LATE_MS:
                    continue
                if calm.between(event["at_ms"] - late - LATE_MS, event["at_ms"]):
                    yield f"playback {index}: {late} ms late at {event['at_ms']}"


def silent_denials(watch: Watch, calm: Calm) -> Iterator[str]:
    """Returns the refusals of the head-end that no event reports, although the network worked and the host lived. A
    refusal may also be followed by a success: the library repeats some requests with another token."""
    for entry in watch.headend.journal:
        if entry.status is None or entry.status < 400 or entry.account is None or entry.route == "teardown":
            continue
        at_ms = watch.ours(entry.at_ms)
        life = next((life for life in watch.lives if life.is_alive(at_ms)), None)
        index = int(entry.account.rsplit("-", 1)[1])
        if life is None or not life.is_alive(at_ms + NOTICE_MS) or not calm.between(at_ms - 100, at_ms + NOTICE_MS):
            continue
        if not any(at_ms - 50 <= event["at_ms"] <= at_ms + NOTICE_MS for event in life.events.get(index, [])):
            yield f"playback {index}: no event after {entry}"


def silent_ends(watch: Watch) -> Iterator[str]:
    """Returns two kinds of faults for each closed context: a playback whose last event is not PLAYBACK_CLOSED; and a
    session that the head-end still holds, although no event of its playback was a TEARDOWN_ERROR or had
    `orphan_possible`."""
    for life in watch.lives:
        if not life.is_closed:
            continue
        for index in range(watch.playbacks):
            events = life.events.get(index, [])
            if not events or events[-1]["type"] != "PLAYBACK_CLOSED":
                yield f"playback {index}: no PLAYBACK_CLOSED"
        for session in watch.headend.sessions.active():
            events = life.events.get(index_of(session), [])
            is_said = any(event["orphan"] or event["type"] == "TEARDOWN_ERROR" for event in events)
            if life.is_alive(watch.ours(session.created_ms)) and not is_said:
                yield f"playback {index_of(session)}: the head-end holds a session after the close"
