"""The rules about FairPlay key servers, ExpressPlay and entitlement servers.

The source is docs/protocol.md, A FairPlay key server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from .encodings import ckc_fault
from .key_requests import MESSAGE_ID, given_url
from .rules import Judged, _answer, _must_be_refused, _must_succeed
from .story import History, Seen

_NEGATIVE = re.compile(rb"-\d{4,}")


def ckc(path: str | None) -> Callable[[History], Judged]:
    """Returns the rule about the reply to an SPC. `path`: see `ckc_fault`."""

    def rule(history: History) -> Judged:
        for seen in history.of("ckc"):
            if seen.ask.token == "newest":
                yield seen, _must_succeed(seen) or ckc_fault(seen.exchange, path)

    return rule


def ckc_refused(path: str | None) -> Callable[[History], Judged]:
    """Returns the rule about the reply to a text that is no SPC: an error status, or a reply without a CKC."""

    def rule(history: History) -> Judged:
        for seen in history.of("ckc"):
            if seen.ask.token == "unknown" and seen.exchange.failure is None:
                yield seen, "it got a CKC" if seen.ok and not ckc_fault(seen.exchange, path) else ""

    return rule


# ---- the entitlement server ------------------------------------------------------------------------------------------


def _replies(history: History, *, unknown: bool) -> Iterator[tuple[Seen, dict[str, Any]]]:
    """Yields each entitlement request with the JSON object in its reply, or with {} if the reply has none. `unknown`:
    True yields only the requests with an unknown content id, False only the requests with a known one."""
    for seen in history.of("entitlement"):
        if (seen.ask.token == "unknown") == unknown:
            value = seen.exchange.json()
            yield seen, value if isinstance(value, dict) else {}


def entitlement(history: History) -> Judged:
    for seen, value in _replies(history, unknown=False):
        wrong = _must_succeed(seen)
        if not wrong and value.get("isAllowed") is not True:
            wrong = "isAllowed is not true"
        if not wrong and given_url(seen.exchange) is None:
            wrong = "epTokenURL is not an http or https URL"
        yield seen, wrong


def entitlement_denied(history: History) -> Judged:
    for seen, value in _replies(history, unknown=True):
        if value.get("isAllowed") is True:
            yield seen, "it was allowed"
        elif seen.exchange.failure is not None:
            yield seen, f"it got {_answer(seen)}"
        elif seen.ok:
            is_number = isinstance(value.get("error"), int) and not isinstance(value.get("error"), bool)
            yield seen, "" if value.get("isAllowed") is False and is_number else "the denial has no error number"
        else:
            yield seen, ""  # a refusal; error-form judges its body


def entitlement_message(history: History) -> Judged:
    for unknown in (False, True):
        for seen, value in _replies(history, unknown=unknown):
            if seen.ok and "messageID" in value:
                same = str(value["messageID"]).lower() == MESSAGE_ID
                yield seen, "" if same else "messageID is not that of the request"


# ---- ExpressPlay -----------------------------------------------------------------------------------------------------


def rights(history: History) -> Judged:
    for seen in history.of("rights"):
        if seen.ask.token == "newest":
            yield seen, _must_succeed(seen) or ckc_fault(seen.exchange)


def rights_unknown(history: History) -> Judged:
    for seen in history.of("rights"):
        if seen.ask.token == "unknown":
            yield seen, _must_be_refused(seen)


def rights_error(history: History) -> Judged:
    for seen in history.of("rights"):
        exchange = seen.exchange
        if exchange.failure is None and not seen.ok:
            has_number = _NEGATIVE.search(exchange.content() or b"") is not None
            yield seen, "" if has_number else f"the body of HTTP {exchange.status} has no negative error number"
