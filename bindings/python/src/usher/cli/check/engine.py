"""Checks whether a head-end keeps the statements of statements.py, and shortens each story that shows a fault."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..spc import others
from ..target import Target
from . import key_servers
from .player import Player
from .statements import WAITING, Statement, needs_session, random_story, statements, stories
from .story import Ask, History, Seen, Story, was_refused_first

MOST_SESSIONS = 16
"""The highest limit of sessions that the check can find by itself. To find the limit, the check sends at most one more
set-up than this number."""
SLOT_PAUSES_S = (0.1, 0.3, 0.9)
"""If all slots are taken, the check waits for the first of these times and tries again, then for the second one, and so
on."""
OF_ANY_REPLY = ("complete", "size", "redirect", "coding", "final", "error-form", "retry-after")
"""The tags of the statements about the replies to all kinds of requests."""
MOST_REPLAYS = 40
MOST_SHORTENING_S = 3.0
"""The limits for the search for a shorter story that shows the same fault: the check plays at most MOST_REPLAYS
stories, and begins none when MOST_SHORTENING_S seconds have passed."""


@dataclass
class Verdict:
    """The result of the check for one statement: whether the head-end keeps it.

    Attributes:
        outcome: ``passed``, ``failed``, ``warned`` or ``skipped``.
        asked: how many requests the statement was about.
        words: what is wrong, or why the statement was skipped.
        history: the shortest story that shows the fault.
        seen: the request of this story that shows the fault.
        again: if the story was played again and did not show the fault, a text that says so; otherwise "".
    """

    statement: Statement = field(repr=False)
    outcome: str = field(default="skipped", repr=False)
    asked: int = 0
    words: str = field(default="", repr=False)
    history: History | None = None
    seen: Seen | None = None
    again: str = field(default="", repr=False)


@dataclass
class Report:
    """What a check has found.

    Attributes:
        limit: the limit of the account; None: not found.
        period_s: the period of the first session; None: not known.
        rotation: what the head-end does with old tokens, in words.
    """

    verdicts: list[Verdict] = field(default_factory=list)
    limit: int | None = None
    period_s: float | None = None
    rotation: str = field(default="", repr=False)
    requests: int = 0
    seconds: float = 0.0
    seed: int = 0
    unreachable: bool = False

    def of(self, outcome: str) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome == outcome]


class Check:
    """A check of a head-end.

    Args:
        target: the head-end.
        player: plays the stories.
        limit: the limit of sessions of the account; None: the check finds the limit by itself.
        random_stories: how many stories in a random order to play.
        seed: decides the random stories.
        patience_s: the longest wait; statements that need a longer one are skipped.
        tell: a function that gets a line about the progress.
    """

    def __init__(
        self,
        target: Target,
        player: Player,
        *,
        limit: int | None = None,
        random_stories: int = 5,
        seed: int = 0,
        patience_s: float = 0,
        tell: Callable[[str], object] = lambda line: None,
    ) -> None:
        self.target = target
        self.player = player
        self.wanted = limit
        self.random_stories = random_stories
        self.patience_s = patience_s
        self.tell = tell
        self.report = Report(seed=seed)
        self._opens = False
        self._is_stuck = False
        """Whether the head-end refused set-ups even after all waits, so that it is useless to wait for free slots
        again."""

    def run(self) -> Report:
        """Plays all stories. Returns the report. Raises KeyboardInterrupt after Ctrl-C, when no session is left."""
        with self.player.interrupts:
            return self._run()

    def _run(self) -> Report:
        began = time.monotonic()
        report = self.report
        self.tell("the first session")
        beat, end = Ask("heartbeat"), Ask("teardown")
        begin: Story = (Ask("setup"), beat, Ask("heartbeat", token="previous"), end, beat, end)
        if not self.target.has_sessions:
            begin = stories(self.target, None, waits=False)[0]
        first = self.player.play(begin)
        report.unreachable = self._is_unreachable(first)
        if not report.unreachable and self.target.has_sessions:
            self._read(first)
            self._opens = any(seen.ok for seen in first.of("setup"))
            self._is_stuck = not self._opens
            report.limit = self.wanted if self.wanted is not None else (self._search() if self._opens else None)
        found = statements(report.limit, self.target.response_path)
        histories = [first]
        if report.limit is not None and self._opens:
            histories.append(self._measure_slots(report.limit))
        if not report.unreachable:
            histories += self._play_all(histories)
        report.verdicts = [self._verdict(statement, histories) for statement in found]
        for verdict in report.of("failed"):
            if verdict.statement.tag == "ckc" and not report.unreachable:
                verdict.words += self._other_form()
        report.requests = self.player.requests
        report.seconds = time.monotonic() - began
        return report

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _is_unreachable(self, first: History) -> bool:
        failure = first.seen[0].exchange.failure if first.seen else None
        return failure is not None and not failure.connected

    def _read(self, first: History) -> None:
        value = first.seen[0].exchange.member("heartbeat")
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            self.report.period_s = float(value)
        again = next((seen for seen in first.seen if seen.ask.token == "previous"), None)
        if not any(seen.ok for seen in first.of("heartbeat")):
            self.report.rotation = ""
        elif again is None:
            self.report.rotation = "a session keeps its first token"
        elif again.ok:
            self.report.rotation = "the two newest tokens are valid"
        else:
            self.report.rotation = "only the newest token is valid"

    def _search(self) -> int | None:
        self.tell("the limit of the account")
        history = self.player.play(tuple(Ask("setup", number) for number in range(MOST_SESSIONS + 1)))
        return next((number or None for number, seen in enumerate(history.seen) if not seen.ok), None)

    def _waits(self) -> bool:
        return self.report.period_s is not None and 8 * self.report.period_s <= self.patience_s

    def _play_all(self, first: list[History]) -> list[History]:
        limit = self.report.limit
        dice = random.Random(self.report.seed)
        wanted = stories(self.target, limit, waits=self._waits())
        if self.target.has_sessions:
            wanted += [random_story(dice, self.target, limit) for _ in range(self.random_stories)]
        else:
            del wanted[0]  # _run() has played it
        if not self._opens:
            wanted = [story for story in wanted if not needs_session(story)]
        found = []
        for number, story in enumerate(wanted, 1):
            self.tell(f"story {number} of {len(wanted)}")
            found.append(self._fresh(story))
        return found

    def _fresh(self, story: Story) -> History:
        """Plays a story, and returns what came back. If the head-end refuses the first set-up, plays the story again a
        moment later: the head-end may still count sessions of the previous story."""
        for pause in (0.1, 0.4, 1.5):
            history = self.player.play(story, patient=not self._is_stuck)
            if not was_refused_first(history) or history.seen[0].exchange.failure is not None:
                return history
            if self._is_stuck:
                break
            self.player.interrupts.sleep(pause)
        history = self.player.play(story)
        self._is_stuck = self._is_stuck or was_refused_first(history)
        return history

    def _measure_slots(self, limit: int) -> History:
        """Fills the account, tears one session down, and sets up another session at once. If the head-end refuses this
        set-up, measures how long after a teardown the slot becomes free. Returns the requests and their replies."""
        fill = tuple(Ask("setup", number) for number in range(limit))
        for pause in (0.0, *SLOT_PAUSES_S):  # sessions of the previous story may still take slots
            self.player.interrupts.sleep(pause)
            history = self.player.play((*fill, Ask("teardown"), Ask("setup", limit)))
            if self._is_stuck or all(seen.ok for seen in history.seen[:limit]):
                break
        else:
            self._is_stuck = True
            return history
        refused = [seen for seen in history.seen if seen.teardowns and not seen.ok]
        if refused:
            self.player.slot_limit = limit
            for pause in SLOT_PAUSES_S:  # play() ends its sessions, so the next play() needs a longer pause before it
                self.player.interrupts.sleep(pause)
                self.player.slot_delay_s = 0.1 + 2 * pause
                if all(seen.ok for seen in self.player.play(fill).seen):
                    break
        return history

    def _other_form(self) -> str:
        """Sends the SPC in the other forms of docs/protocol.md. Returns a text about the first form for which the
        server gives a CKC; "" if there is none."""
        rule = key_servers.ckc(self.target.response_path)
        try:
            for form in others(self.target.spc_form):
                self.tell(f"the key server: {form.options}")
                self.player.target = replace(self.target, spc_form=form)
                if all(not wrong for _, wrong in rule(self.player.play((Ask("ckc"),)))):
                    return f"; the server gives a CKC with {form.options}"
        finally:
            self.player.target = self.target
        return ""

    def _verdict(self, statement: Statement, histories: list[History]) -> Verdict:
        verdict = Verdict(statement)
        failing: History | None = None
        judged = histories[:1] if statement.tag == "setup-success" else histories
        for history in judged:
            for _, wrong in statement.rule(history):
                verdict.asked += 1
                if wrong and failing is None:
                    failing = history
        if failing is not None:
            verdict.outcome = "warned" if statement.advice else "failed"
            self._shorten(verdict, failing)
        elif verdict.asked:
            verdict.outcome = "passed"
        else:
            verdict.words = self._why_not(statement)
        return verdict

    def _why_not(self, statement: Statement) -> str:
        if self.report.unreachable:
            return "the head-end cannot be reached"
        missing = self._missing(statement.tag)
        if missing:
            return missing
        if not self._opens and statement.tag not in OF_ANY_REPLY:
            return "no session was set up"
        if statement.tag in WAITING and not self._waits():
            if self.report.period_s is None:
                return "needs a period"
            return f"needs waits of {3.2 * self.report.period_s:g} s; give --patience {8 * self.report.period_s:g}"
        return "no request was about it"

    def _missing(self, tag: str) -> str:
        """Returns why the options do not allow a check of this statement; "" if they allow it."""
        target = self.target
        if tag == "certificate":
            return "" if target.certificate is not None else "needs --certificate"
        if tag.startswith("ckc"):
            return "" if target.key_server is not None else "needs --key-server"
        if tag.startswith(("entitlement", "rights")):
            return "" if target.entitlement is not None else "needs --entitlement"
        if tag in ("license-alone", "license-token") and target.has_sessions:
            return "only for servers without sessions"
        if tag not in (*OF_ANY_REPLY, "license-alone", "license-token") and not target.has_sessions:
            return "needs the URL of the session manager"
        if tag.startswith(("license", "renewal")) and not target.asks_license:
            return "needs --license, and --key-id or --payload"
        return "needs --token-file" if tag == "license-token" and not target.tokens else ""

    def _shorten(self, verdict: Verdict, failing: History) -> None:
        self.tell(f"shortening: {verdict.statement.tag}")
        rule = verdict.statement.rule

        def shows(history: History) -> bool:
            return any(wrong for _, wrong in rule(history))

        failing = _cut(failing, next(seen for seen, wrong in rule(failing) if wrong))
        best, replays, end = failing, 0, time.monotonic() + MOST_SHORTENING_S
        again = self._fresh(failing.story)
        replays += 1
        if not shows(again):
            refused = "the server refused the set-up, because the earlier sessions still take slots"
            came = refused if was_refused_first(again) else "the fault did not occur again"
            verdict.again = f"When the same requests were sent again, {came}."
        else:
            best = again
            story = failing.story
            tried = True
            while tried and replays < MOST_REPLAYS:
                tried = False
                for shorter in shorter_stories(story):
                    if replays >= MOST_REPLAYS or time.monotonic() > end:
                        break
                    history = self._fresh(shorter)
                    replays += 1
                    if shows(history):
                        best, story, tried = history, shorter, True
                        break
        for verdict.seen, verdict.words in rule(best):
            if verdict.words:
                break
        verdict.history = best


def _cut(history: History, last: Seen) -> History:
    """Returns the part of a history that ends with the request ``last``."""
    return History(history.story[: last.group + 1], history.seen[: history.seen.index(last) + 1])


def shorter_stories(story: Story) -> list[Story]:
    """Returns shorter and simpler forms of a story: first its two halves, then the story without one of its steps, then
    the story with one step made simpler."""
    found = []
    if len(story) > 3:
        half = len(story) // 2
        found += [story[:half], story[half:]]
    found += [story[:place] + story[place + 1 :] for place in range(len(story) - 1, -1, -1) if len(story) > 1]
    for place, step in enumerate(story):
        if not isinstance(step, Ask):
            continue
        if step.together > 2:
            found.append((*story[:place], replace(step, together=step.together - 1), *story[place + 1 :]))
        if step.capitals:
            found.append((*story[:place], replace(step, capitals=False), *story[place + 1 :]))
    return found
