"""The rules about the limit of sessions of an account. These rules work only if the limit is known."""

from __future__ import annotations

from collections.abc import Callable

from .replies import session_token
from .rules import Judged, _answer, _must_succeed
from .story import History

Rule = Callable[[History], Judged]


def reached(limit: int) -> Rule:
    def rule(history: History) -> Judged:
        for seen in history.of("setup"):
            fits = 0 < seen.held < limit and seen.held + seen.ask.together <= limit
            if fits and seen.ask.token == "newest" and not seen.teardowns and not seen.refusals:
                yield seen, _must_succeed(seen)

    return rule


def held(limit: int) -> Rule:
    def rule(history: History) -> Judged:
        for seen in history.of("setup"):
            if seen.held >= limit and seen.ask.token == "newest" and seen.ask.together == 1 and not seen.refusals:
                yield seen, f"session {seen.held + 1} was set up, and the limit is {limit}" if seen.ok else ""

    return rule


def code(limit: int) -> Rule:
    def rule(history: History) -> Judged:
        for seen in history.of("setup"):
            if seen.held >= limit and not seen.ok and seen.exchange.failure is None and seen.ask.token == "newest":
                yield (
                    seen,
                    "" if seen.error_code == 1007 else f"it was refused with {_answer(seen)}, not with code 1007",
                )

    return rule


def no_token(limit: int) -> Rule:
    def rule(history: History) -> Judged:
        for seen in history.of("setup"):
            if seen.held >= limit and not seen.ok and seen.exchange.failure is None:
                has_token = session_token(seen.exchange) is not None
                yield seen, "the refusal has a sessionToken, so it opens a session" if has_token else ""

    return rule


def others_live(limit: int) -> Rule:
    def rule(history: History) -> Judged:
        for seen in history.of("heartbeat"):
            if seen.refusals and seen.is_live and seen.from_reply == "setup":
                yield seen, _must_succeed(seen)

    return rule


def frees_slot(limit: int) -> Rule:
    def rule(history: History) -> Judged:
        for seen in history.of("setup"):
            if seen.teardowns and not seen.refusals and seen.held < limit and seen.ask.together == 1:
                yield seen, _must_succeed(seen)

    return rule


def refusal_takes_none(limit: int) -> Rule:
    def rule(history: History) -> Judged:
        for seen in history.of("setup"):
            if seen.teardowns and seen.refusals and seen.held < limit and seen.ask.together == 1:
                yield seen, _must_succeed(seen)

    return rule


def together(limit: int) -> Rule:
    def rule(history: History) -> Judged:
        groups: dict[int, list[int]] = {}
        for place, seen in enumerate(history.seen):
            if seen.ask.call == "setup" and seen.ask.together > 1:
                groups.setdefault(seen.group, []).append(place)
        for places in groups.values():
            group = [history.seen[place] for place in places]
            granted = [seen for seen in group if seen.ok]
            count = group[0].held + len(granted)
            wrong = f"{count} sessions were set up at the same time, and the limit is {limit}" if count > limit else ""
            yield (granted or group)[-1], wrong

    return rule
