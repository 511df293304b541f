"""The rules of ``usher check``. A rule reads the replies of a story, and judges the requests to which it applies.

For each such request, the rule yields the request and a text that says what is wrong. If all is right, the text is "".
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from ..wire.exchange import Exchange, Failure
from .encodings import certificate_fault
from .replies import session_token
from .story import History, Seen

Judged = Iterator[tuple[Seen, str]]
MOST_TOKEN_BYTES = 64 * 1024
SHORT_TEXT = 200
"""How many bytes the reply to a teardown may have if it is text."""


def _answer(seen: Seen) -> str:
    """Returns in a few words what the server answered, for a text about a wrong answer."""
    exchange = seen.exchange
    if exchange.failure is not None:
        return f"no complete reply ({exchange.failure.name.lower()})"
    code = seen.error_code
    return f"HTTP {exchange.status}" + (f", code {code}" if code is not None else "")


def _must_succeed(seen: Seen) -> str:
    return "" if seen.ok else f"it got {_answer(seen)}"


def _must_be_refused(seen: Seen) -> str:
    """Returns what is wrong if the head-end did not refuse the request with an error status; otherwise "". Without such
    a refusal the library repeats the request or continues."""
    if seen.ok:
        return "it was accepted"
    return "" if seen.exchange.failure is None else f"it got {_answer(seen)}"


# ---- any reply -------------------------------------------------------------------------------------------------------


def complete(history: History) -> Judged:
    for seen in history.seen:
        failure = seen.exchange.failure
        yield seen, "" if failure is None or failure is Failure.TOO_LARGE else f"it got {_answer(seen)}"


def size(history: History) -> Judged:
    for seen in history.seen:
        yield seen, "the reply is larger than 1 MiB" if seen.exchange.failure is Failure.TOO_LARGE else ""


def redirect(history: History) -> Judged:
    for seen in history.seen:
        status = seen.exchange.status
        yield seen, f"it was answered with a redirect (HTTP {status})" if 300 <= status <= 399 else ""


def coding(history: History) -> Judged:
    for seen in history.seen:
        if seen.exchange.failure is None and seen.exchange.body:
            used = seen.exchange.coding
            if used not in ("", "gzip", "x-gzip", "deflate"):
                yield seen, f"the reply has the coding {used}"
            else:
                yield seen, "" if seen.exchange.content() is not None else f"the reply is not {used}, as it says"


def final(history: History) -> Judged:
    """Judges refusals: a refusal with HTTP 5xx or 429 is wrong. Such a status says that the failure is temporary, and
    after it the library repeats a keep-alive or a teardown."""
    for seen in history.seen:
        status = seen.exchange.status
        if seen.exchange.failure is None and not seen.ok and not 300 <= status <= 399:
            yield seen, f"it was refused with HTTP {status}" if status >= 500 or status == 429 else ""


def error_form(history: History) -> Judged:
    for seen in history.seen:
        exchange = seen.exchange
        if (
            exchange.failure is None
            and 400 <= exchange.status <= 499
            and seen.ask.call not in ("certificate", "rights")
        ):
            if not isinstance(exchange.json(), dict):
                yield seen, f"the body of HTTP {exchange.status} is not a JSON object"
            else:
                yield (
                    seen,
                    "" if seen.error_code is not None else f"the body of HTTP {exchange.status} has no errorCode",
                )


def retry_after(history: History) -> Judged:
    for seen in history.seen:
        value = seen.exchange.header("Retry-After")
        if value is not None:
            yield seen, "" if _is_delay(value) else "Retry-After is neither a number of seconds nor a date"


def _is_delay(value: str) -> bool:
    if value.strip().isdigit():
        return True
    try:
        parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return False
    return True


# ---- set-up ----------------------------------------------------------------------------------------------------------


def _setups(history: History) -> Iterator[Seen]:
    return (seen for seen in history.of("setup") if seen.ask.token == "newest")


def setup_success(history: History) -> Judged:
    for seen in _setups(history):
        if seen.held == 0 and seen.ask.together == 1 and not seen.teardowns and not seen.refusals:
            yield seen, _must_succeed(seen)


def setup_token(history: History) -> Judged:
    for seen in _setups(history):
        if seen.ok:
            value = seen.exchange.member("sessionToken")
            if not isinstance(seen.exchange.json(), dict):
                yield seen, "the reply is not a JSON object"
            elif value is None or value == "":
                yield seen, "the reply has no sessionToken"
            else:
                yield seen, "" if isinstance(value, str) else "sessionToken is not a string"


def token_form(history: History) -> Judged:
    for seen in history.seen:
        token = session_token(seen.exchange)
        if token is not None:
            if not all("\x21" <= character <= "\x7e" for character in token) or "," in token:
                yield seen, "sessionToken has a character that the token header cannot have (a blank, a comma, …)"
            else:
                yield seen, "" if len(token) <= MOST_TOKEN_BYTES else "sessionToken has more than 64 kB"


def setup_period(history: History) -> Judged:
    for seen in _setups(history):
        if seen.ok:
            value: Any = seen.exchange.member("heartbeat")
            if value is None:
                yield seen, "the reply has no heartbeat"
            elif isinstance(value, str):
                yield seen, f'heartbeat is the text "{value[:20]}", not a number'
            elif isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                yield seen, f"heartbeat is {json.dumps(value)[:20]}, not a number greater than 0"
            else:
                yield seen, ""


def period_range(history: History) -> Judged:
    for seen in _setups(history):
        value = seen.exchange.member("heartbeat") if seen.ok else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            wrong = "below 1 s, so the library uses 1 s" if value < 1 else "above a day, so the library uses a day"
            yield seen, "" if 1 <= value <= 86400 else f"heartbeat is {value} s: {wrong}"


def tokens_differ(history: History) -> Judged:
    known: set[str] = set()
    for seen in history.of("setup"):
        token = session_token(seen.exchange) if seen.ok else None
        if token is not None:
            if known:
                yield seen, "two sessions have the same token" if token in known else ""
            known.add(token)


def bad_content_token(history: History) -> Judged:
    for seen in history.of("setup"):
        if seen.ask.token == "unknown":
            yield seen, _must_be_refused(seen)


# ---- heartbeats ------------------------------------------------------------------------------------------------------


def heartbeat_success(history: History) -> Judged:
    for seen in history.of("heartbeat"):
        if seen.is_live and seen.from_reply == "setup" and not seen.ask.capitals and not seen.refusals:
            yield seen, _must_succeed(seen)


def heartbeat_next(history: History) -> Judged:
    for seen in history.of("heartbeat"):
        if seen.is_live and seen.from_reply == "heartbeat" and not seen.ask.capitals:
            yield seen, _must_succeed(seen)


def heartbeat_json(history: History) -> Judged:
    for seen in history.of("heartbeat"):
        if seen.ok:
            if not isinstance(seen.exchange.json(), dict):
                yield seen, "the reply is not a JSON object"
            else:
                value = seen.exchange.member("sessionToken")
                yield seen, "" if value is None or isinstance(value, str) else "sessionToken is not a string"


def header_case(history: History) -> Judged:
    for seen in history.seen:
        if seen.ask.capitals and seen.is_live and seen.from_reply == "setup":
            yield seen, _must_succeed(seen)


def old_token(history: History) -> Judged:
    for seen in history.of("heartbeat"):
        if seen.age is not None and seen.age >= 2 and not seen.ended:
            yield seen, _must_be_refused(seen)


def repeated(history: History) -> Judged:
    for seen in history.of("heartbeat"):
        if seen.age == 1 and not seen.ended and not seen.ok:
            yield seen, "" if seen.error_code == 1006 else f"it was refused with {_answer(seen)}, not with code 1006"
        elif seen.age == 1 and not seen.ended:
            yield seen, ""


def no_token(history: History) -> Judged:
    for seen in history.seen:
        if seen.ask.token == "none":
            yield seen, _must_be_refused(seen)


def unknown_token(history: History) -> Judged:
    for seen in history.seen:
        if seen.ask.token == "unknown" and seen.ask.call in ("heartbeat", "teardown"):
            yield seen, _must_be_refused(seen)


# ---- teardown --------------------------------------------------------------------------------------------------------


def teardown_success(history: History) -> Judged:
    for seen in history.of("teardown"):
        if seen.is_live:
            yield seen, _must_succeed(seen) or _not_confirmed(seen.exchange)


def _not_confirmed(exchange: Exchange) -> str:
    content = exchange.content()
    if not content:
        return "" if content is not None else "the reply cannot be decoded"
    value = exchange.json()
    if isinstance(value, dict):
        for name in ("errorCode", "code", "error_code"):
            if value.get(name) not in (None, 0, "0"):
                return f"the reply has HTTP {exchange.status}, but an error code: {value[name]}"
        return ""
    if value is not None:
        return ""
    is_text = len(content) <= SHORT_TEXT and all(32 <= byte < 127 or byte in b"\r\n\t" for byte in content)
    return "" if is_text and b"<" not in content else "the reply is neither JSON nor a short text"


def teardown_ends(history: History) -> Judged:
    for seen in history.seen:
        if seen.ended and seen.ask.call in ("heartbeat", "renew"):
            yield seen, _must_be_refused(seen)


def ended_code(history: History) -> Judged:
    for seen in history.of("heartbeat"):
        if seen.ended and not seen.ok and seen.exchange.failure is None:
            yield seen, "" if seen.error_code == 1006 else f"it was refused with {_answer(seen)}, not with code 1006"


def teardown_twice(history: History) -> Judged:
    for seen in history.of("teardown"):
        if seen.ended:
            right = seen.ok or seen.error_code == 1006
            yield seen, "" if right else f"it was answered with {_answer(seen)}, not with success or code 1006"


# ---- licences --------------------------------------------------------------------------------------------------------


def license_success(history: History) -> Judged:
    for seen in history.of("license"):
        if seen.age == 0 and not seen.ended and seen.ask.token == "newest":
            yield seen, _must_succeed(seen) or _no_license(seen.exchange)


def _no_license(exchange: Exchange) -> str:
    content = exchange.content() or b""
    value = exchange.json()
    if isinstance(value, dict):
        keys = value.get("keys")
        if isinstance(keys, list):
            whole = bool(keys) and all(isinstance(key, dict) and _is_base64(key.get("k")) for key in keys)
            return "" if whole else "a key in the reply has no k"
        names = ("CkcMessage", "ckc", "License", "license")
        found = next((value[name] for name in names if value.get(name)), None)
        found = found[0] if isinstance(found, list) and found else found
        return "" if _is_base64(found) else "the reply has no licence"
    if not content:
        return "the reply is empty"
    is_page = re.match(rb"\s*(<!doctype|<html)", content, re.I)
    return "the reply is a web page" if is_page else ""


def _is_base64(value: object) -> bool:
    if not isinstance(value, str) or not value:
        return False
    try:
        base64.b64decode(value.replace("-", "+").replace("_", "/") + "==", validate=False)
    except (binascii.Error, ValueError):
        return False
    return True


def license_keeps_session(history: History) -> Judged:
    licensed = False
    for seen in history.seen:
        if seen.ask.call == "license" and seen.ok:
            licensed = True
        elif licensed and seen.ask.call == "heartbeat" and seen.is_live and seen.from_reply != "heartbeat":
            yield seen, _must_succeed(seen)


def license_ended(history: History) -> Judged:
    for seen in history.of("license"):
        if seen.ended:
            yield seen, _must_be_refused(seen)


def license_unknown(history: History) -> Judged:
    for seen in history.of("license"):
        if seen.ask.token == "unknown":
            yield seen, _must_be_refused(seen)


def license_without_session(history: History) -> Judged:
    for seen in history.of("license"):
        if seen.ask.token == "content":
            yield seen, "it was granted, so a player can play without taking a slot" if seen.ok else ""


def license_alone(history: History) -> Judged:
    for seen in history.of("license-alone"):
        if seen.ask.token == "newest":
            yield seen, _must_succeed(seen) or _no_license(seen.exchange)


def license_token(history: History) -> Judged:
    for seen in history.of("license-alone"):
        if seen.ask.token == "unknown":
            yield seen, _must_be_refused(seen)


def renewal(history: History) -> Judged:
    """Judges the renewals of sessions whose licence reply had a session token: renewals keep such a session alive."""
    for seen in history.of("renew"):
        if seen.is_live and seen.from_reply in ("license", "renew"):
            wrong = _must_succeed(seen) or _no_license(seen.exchange)
            yield seen, wrong or ("" if session_token(seen.exchange) else "the reply has no sessionToken")


def certificate(history: History) -> Judged:
    for seen in history.of("certificate"):
        yield seen, _must_succeed(seen) or certificate_fault(seen.exchange)


# ---- leases ----------------------------------------------------------------------------------------------------------


def lease(history: History) -> Judged:
    for seen in history.of("heartbeat"):
        if seen.age == 0 and not seen.ended and 0.9 <= seen.idle < 1.5:
            yield seen, _must_succeed(seen)


def long_lease(history: History) -> Judged:
    for seen in history.of("heartbeat"):
        if seen.age == 0 and not seen.ended and 1.5 <= seen.idle < 2:
            yield seen, _must_succeed(seen)


def expiry(history: History) -> Judged:
    for seen in history.of("heartbeat"):
        if seen.age == 0 and not seen.ended and seen.idle >= 3:
            yield seen, _must_be_refused(seen)
