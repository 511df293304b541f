"""Finds protocol violations of clients in the journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from ..state.tokens import shorten
from .hiding import plain
from .journal import Entry, Outcome

ViolationKind = Literal[
    "after-teardown", "stale-token", "late-beat", "space-after-comma", "content-token-on-keep-alive"
]
"""The kinds of violation; see ``find``."""

_KINDS: tuple[ViolationKind, ...] = get_args(ViolationKind)
_KEEP_ALIVES = ("heartbeat", "renewal-wv", "license-renewal")
_SESSION_ALONE = (*_KEEP_ALIVES, "teardown")


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation.

    Attributes:
        kind: see ``find``.
        number: the number of the journal entry that shows the violation.
        message: one line.
    """

    kind: ViolationKind
    number: int
    message: str

    def __str__(self) -> str:
        return plain(f"#{self.number} {self.kind}: {self.message}")


def find(
    entries: Iterable[Entry], *, period_ms: int, tolerance_ms: int, ignore: Collection[str] = ()
) -> list[Violation]:
    """Returns the violations in the order of the requests that show them.

    If a session expires, this is no violation, because with SSP V2 the client need not tear the session down.

    - ``after-teardown``: a request has a token of a session whose teardown the head-end received before. A retry of a
      teardown that failed is no violation.
    - ``stale-token``: a request has a session token that is older than the newest one that the client had received.
    - ``late-beat``: the time between two keep-alives is longer than period + tolerance. For the first keep-alive, the
      time counts from the reply that opened the session: the reply to set-up, or with SSP V2 to the first licence
      request.
    - ``space-after-comma``: there is a space next to a comma in the authorisation header.
    - ``content-token-on-keep-alive``: a heartbeat, renewal or teardown carries a content token.

    Args:
        entries: the journal.
        period_ms: the keep-alive period that the head-end sends to clients.
        tolerance_ms: how late a keep-alive may be.
        ignore: the kinds of violations that this function does not return.
    """
    unknown = set(ignore) - set(_KINDS)
    if unknown:
        raise ValueError(f"unknown violation kind {', '.join(sorted(unknown))}; kinds are {', '.join(_KINDS)}")
    had: dict[str, int] = {}
    under_way: dict[str, list[Entry]] = {}
    torn: dict[str, Entry] = {}
    alive: dict[str, int] = {}
    found: list[Violation] = []

    def report(kind: ViolationKind, entry: Entry, message: str) -> None:
        if kind not in ignore:
            found.append(Violation(kind, entry.number, message))

    for entry in entries:
        if entry.authorization.spaced:
            report("space-after-comma", entry, f"{entry.route} has a space at a comma of its tokens")
        if entry.route in _SESSION_ALONE and entry.authorization.all("content"):
            report("content-token-on-keep-alive", entry, f"{entry.route} carries a content token")
        token = entry.session_token
        if token is not None and token.jti is not None and token.signed:
            session = token.jti
            if session in torn and not (entry.route == "teardown" and not _succeeded(torn[session])):
                report(
                    "after-teardown", entry, f"{entry.route} with {token.short} after teardown #{torn[session].number}"
                )
            replies = under_way.get(session, [])
            arrived = [reply for reply in replies if _answered_before(reply, entry)]
            if arrived:
                under_way[session] = [reply for reply in replies if not _answered_before(reply, entry)]
                had[session] = max(had.get(session, 0), *(reply.issued or 0 for reply in arrived))
            if token.seq is not None and token.seq < had.get(session, 0):
                newest = shorten("session", session, had[session])
                report("stale-token", entry, f"{entry.route} with {token.short}, the client had {newest}")
            if entry.route in _KEEP_ALIVES:
                if session in alive and session not in torn:
                    late_ms = entry.at_ms - alive[session] - period_ms
                    if late_ms > tolerance_ms:
                        report("late-beat", entry, f"{entry.route} of {token.short} is {late_ms} ms late")
                alive[session] = entry.at_ms
            if entry.route == "teardown":
                torn[session] = entry
        if entry.session is not None and entry.delivered and entry.issued is not None:
            under_way.setdefault(entry.session, []).append(entry)
            opened = entry.session_token is None
            if opened and entry.outcome is Outcome.ANSWERED and entry.answered_ms is not None:
                alive.setdefault(entry.session, entry.answered_ms)
    return found


def _succeeded(entry: Entry) -> bool:
    """Whether the client received a reply that its teardown succeeded. Otherwise the client may retry the teardown."""
    return entry.outcome is Outcome.ANSWERED and entry.status is not None and 200 <= entry.status < 300


def _answered_before(answered: Entry, entry: Entry) -> bool:
    return answered.answered_after is not None and answered.answered_after < entry.number
