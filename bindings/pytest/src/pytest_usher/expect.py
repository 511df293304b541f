"""Checks of a head-end's journal and session table. A failure says in words what is wrong, and shows the rows of the
journal; a ``>`` marks the rows that the failure is about."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from usher.testing.headend import Entry, HeadEnd

from .foreign import ForeignHeadEnd

KEEP_ALIVES = ("heartbeat", "renewal-wv", "license-renewal")
_SHOWN_ROWS = 40


class Expectations:
    """Checks of one head-end. Each method raises AssertionError if the head-end did not see what the method says.

    The parameters ``account`` and ``session`` choose the requests of one account or of one session; None: all requests.
    """

    def __init__(self, headend: HeadEnd | ForeignHeadEnd) -> None:
        self._headend: Any = headend

    def routes(self, *expected: str, account: str | None = None, session: str | None = None) -> None:
        """Checks that exactly these requests arrived, in this order, such as ``"setup", "license", "teardown"``."""
        __tracebackhide__ = True
        entries = self._entries(account=account, session=session)
        found = [entry.route for entry in entries]
        if found == list(expected):
            return
        lines, marked = [], set[int]()
        for kind, a, b, c, d in SequenceMatcher(None, list(expected), found, autojunk=False).get_opcodes():
            marked |= {entry.number for entry in entries[c:d] if kind != "equal"}
            after = f"after request {entries[c - 1].number}" if c else "at the start"
            if kind in ("delete", "replace"):
                lines.append(f"{after}: no {', '.join(expected[a:b])} arrived")
            if kind in ("insert", "replace"):
                lines.append(f"{after}: {', '.join(found[c:d])} arrived, which the test does not expect")
        self._fail("other requests arrived than expected: " + "; ".join(lines), marked, entries)

    def tokens_fresh(self, *, account: str | None = None, session: str | None = None) -> None:
        """Checks that each request carries the newest session token that its sender had received."""
        __tracebackhide__ = True
        for own in self._by_session(account, session).values():
            carrying = [entry for entry in own if entry.session_token is not None]
            for earlier, later in pairwise(carrying):
                old, new = earlier.session_token, later.session_token
                assert old is not None and new is not None
                if old.seq is None or old.seq != new.seq or not earlier.delivered or earlier.issued in (None, old.seq):
                    continue
                both = earlier.route == later.route
                who = f"two {later.route}s" if both else f"a {earlier.route} and a {later.route}"
                self._fail(
                    f"{who} carried the same token: {new.short}, although the reply to request {earlier.number} had "
                    f"brought number {earlier.issued}",
                    {earlier.number, later.number},
                )
        stale = [found for found in self._headend.violations() if found.kind == "stale-token"]
        if stale:
            self._fail(f"a request carried an old token: {stale[0].message}", {stale[0].number})

    def heartbeats(
        self,
        count: int,
        *,
        every_ms: int | None = None,
        within_ms: int = 0,
        account: str | None = None,
        session: str | None = None,
    ) -> None:
        """Checks how many keep-alives arrived. With ``every_ms`` also checks each time between two keep-alives, and the
        time from the reply that opened the session to the first keep-alive. Each may differ by up to ``within_ms``."""
        __tracebackhide__ = True
        beats = [entry for entry in self._entries(account=account, session=session) if entry.route in KEEP_ALIVES]
        if len(beats) != count:
            self._fail(f"{_number(len(beats), 'keep-alive')} arrived, not {count}", {beat.number for beat in beats})
        if every_ms is None:
            return
        for own in self._by_session(account, session).values():
            opened = next((e.answered_ms for e in own if e.session_token is None and e.issued is not None), None)
            previous, name = opened, "the session began"
            for beat in (entry for entry in own if entry.route in KEEP_ALIVES):
                if previous is not None and abs(beat.at_ms - previous - every_ms) > within_ms:
                    gap_s = (beat.at_ms - previous) / 1000
                    self._fail(
                        f"request {beat.number} arrived {gap_s:g} s after {name}, not {every_ms / 1000:g} s",
                        {beat.number},
                    )
                previous, name = beat.at_ms, f"request {beat.number}"

    def refused(self, route: str, code: int | None = None, *, account: str | None = None, times: int = 1) -> None:
        """Checks that the head-end refused exactly ``times`` requests of this route. ``code`` is their error code;
        None: any code."""
        __tracebackhide__ = True
        asked = self._entries(route=route, account=account)
        refused = [e for e in asked if e.status is not None and e.status >= 400 and code in (None, e.error_code)]
        if len(refused) != times:
            answers = ", ".join(f"request {e.number}: {_answer(e)}" for e in asked) or f"no {route} arrived"
            wanted = f"{_number(times, route)} refused" + (f" with code {code}" if code is not None else "")
            self._fail(f"expected {wanted}, but {len(refused)} was: {answers}", {entry.number for entry in asked})

    def sessions(self, active: int, *, account: str | None = None) -> None:
        """Checks how many sessions the head-end holds now."""
        __tracebackhide__ = True
        held = self._headend.sessions.active(account)
        if len(held) != active:
            ids = {session.id for session in held}
            rows = {entry.number for entry in self._headend.journal if entry.session in ids}
            whose = "" if account is None else f" of {account}"
            names = ", ".join(f"{session.id[:4]}… of {session.account}" for session in held) or "none"
            self._fail(f"the head-end holds {_number(len(held), 'session')}{whose}, not {active}: {names}", rows)

    def torn_down(self, *, account: str | None = None) -> None:
        """Checks that a teardown ended each session, and that no later request had a token of the session."""
        __tracebackhide__ = True
        for found in self._headend.sessions.all(account):
            if found.state.value != "torn_down":
                rows = {entry.number for entry in self._headend.journal.entries(session=found.id)}
                state = "is still held" if found.active else f"has ended: {found.state.value.replace('_', ' ')}"
                self._fail(f"no teardown ended the session {found.id[:4]}… of {found.account}: it {state}", rows)
        after = [found for found in self._headend.violations() if found.kind == "after-teardown"]
        if after:
            self._fail(f"a request followed the teardown: {after[0].message}", {after[0].number})

    def teardown_before_setup(self, *, account: str | None = None) -> None:
        """Checks the order of zaps: each set-up after the first arrived after the teardown of the session before."""
        __tracebackhide__ = True
        entries = self._entries(account=account)
        setups = [entry for entry in entries if entry.route == "setup"]
        for earlier, later in pairwise(setups):
            between = [e for e in entries if earlier.number < e.number < later.number and e.route == "teardown"]
            if not between:
                self._fail(
                    f"set-up {later.number} arrived before the teardown of the session that set-up {earlier.number} "
                    "opened",
                    {earlier.number, later.number},
                )

    def clean(self, *, ignore: Collection[str] = ()) -> None:
        """Checks that the player broke no rule of the protocol (``HeadEnd.violations``)."""
        __tracebackhide__ = True
        found = self._headend.violations(ignore=ignore)
        if found:
            words = "; ".join(f"request {one.number}: {one.message}" for one in found)
            self._fail(f"{_number(len(found), 'rule')} broken: {words}", {one.number for one in found})

    # ---- parts -------------------------------------------------------------------------------------------------------

    def _entries(self, **filters: Any) -> list[Entry]:
        return list(self._headend.journal.entries(**filters))

    def _by_session(self, account: str | None, session: str | None) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for entry in self._entries(account=account, session=session):
            if entry.session is not None:
                found.setdefault(entry.session, []).append(entry)
        return found

    def _fail(self, what: str, marked: Iterable[int], entries: list[Entry] | None = None) -> None:
        __tracebackhide__ = True
        raise AssertionError(f"{what}\n{table(self._headend, set(marked), entries)}")


def table(headend: Any, marked: Collection[int], entries: list[Entry] | None = None) -> str:
    """Returns rows of the journal as text, with ``>`` before the marked ones. If there are many rows, leaves out those
    before and after the marked ones."""
    rows = list(headend.journal.entries()) if entries is None else entries
    shown = rows
    if len(rows) > _SHOWN_ROWS:
        near = [index for index, entry in enumerate(rows) if entry.number in marked] or [len(rows) - 1]
        shown = rows[max(0, near[0] - 3) : near[0] - 3 + _SHOWN_ROWS] if near[0] > 3 else rows[:_SHOWN_ROWS]
    head, *lines = headend.journal.dump(shown, since_ms=rows[0].at_ms if rows else None).splitlines()
    marks = [f"{'>' if entry.number in marked else ' '} {line}" for entry, line in zip(shown, lines, strict=False)]
    left_out = len(rows) - len(shown)
    return "\n".join([f"  {head}", *marks, *([f"  … and {left_out} more requests"] if left_out else [])])


def _answer(entry: Entry) -> str:
    if entry.status is None:
        return entry.outcome.value
    return f"status {entry.status}" + (f", code {entry.error_code}" if entry.error_code is not None else "")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
