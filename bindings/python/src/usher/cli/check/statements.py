"""The statements of docs/protocol.md about head-ends, and the stories that check them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ..target import Target
from . import key_servers, limits, rules
from .rules import Judged
from .story import WITHOUT_SESSION, Ask, Call, History, Pause, Story, Wait, Which


@dataclass(frozen=True)
class Statement:
    """A statement about the server's side.

    Attributes:
        tag: its short name, which reports and the manual use.
        text: the statement, in one sentence.
        section: the heading of docs/protocol.md that it comes from.
        rule: the rule that judges it.
        advice: True: a head-end need not keep the statement, and the check reports a warning instead of a fault. The
            text that the rule yields says what the head-end loses.
    """

    tag: str = field(repr=False)
    text: str = field(repr=False)
    section: str = field(repr=False)
    rule: Callable[[History], Judged] = field(repr=False)
    advice: bool = False


SESSION, LICENSES, FAILS, RACES = "The session", "Licences", "When it fails", "Races"
RENEWALS = "Heartbeats or renewals"
KEYS = "A FairPlay key server"


def statements(limit: int | None, response_path: str | None = None) -> list[Statement]:
    """Returns the statements. If the limit is None (not known), leaves out the statements about the limit.

    Args:
        response_path: see ``Target``.
    """
    found = [
        Statement("complete", "Every request gets a complete HTTP reply", FAILS, rules.complete),
        Statement("size", "A reply has at most 1 MiB", FAILS, rules.size),
        Statement("redirect", "No reply is a redirect", SESSION, rules.redirect),
        Statement("coding", "A reply is plain, or has the coding gzip or deflate", SESSION, rules.coding),
        Statement("final", "A refusal has a status that is final: not 5xx, and not 429", FAILS, rules.final),
        Statement("error-form", "The body of a refusal is JSON with an errorCode", FAILS, rules.error_form),
        Statement("retry-after", "Retry-After is a number of seconds or a date", FAILS, rules.retry_after),
        Statement("setup-success", "The first set-up of an account succeeds", SESSION, rules.setup_success),
        Statement("setup-token", "The reply to set-up has a sessionToken", SESSION, rules.setup_token),
        Statement("setup-period", "heartbeat in the reply to set-up is a number above 0", SESSION, rules.setup_period),
        Statement("period-range", "The period is from 1 s to a day", SESSION, rules.period_range, advice=True),
        Statement("token-form", "A session token fits into a header, and has at most 64 kB", SESSION, rules.token_form),
        Statement("tokens-differ", "Two sessions have different tokens", SESSION, rules.tokens_differ),
        Statement("bad-content-token", "Set-up refuses an unknown content token", SESSION, rules.bad_content_token),
        Statement("heartbeat", "A heartbeat with the token of set-up succeeds", SESSION, rules.heartbeat_success),
        Statement("heartbeat-next", "The token in a heartbeat's reply is valid", SESSION, rules.heartbeat_next),
        Statement("heartbeat-json", "The reply to a heartbeat is a JSON object", SESSION, rules.heartbeat_json),
        Statement("header-case", "The name of the token header has any letter case", SESSION, rules.header_case),
        Statement("old-token", "At most the two newest session tokens are valid", RACES, rules.old_token),
        Statement("repeated", "The token before the newest is valid, or refused with 1006", RACES, rules.repeated),
        Statement("no-token", "A request without a token is refused", SESSION, rules.no_token),
        Statement("unknown-token", "An unknown session token is refused", SESSION, rules.unknown_token),
        Statement("teardown", "A teardown succeeds, and its reply has no error code", SESSION, rules.teardown_success),
        Statement("teardown-ends", "After the teardown the session's token is refused", SESSION, rules.teardown_ends),
        Statement("ended-code", "A heartbeat after the teardown gets code 1006", RACES, rules.ended_code),
        Statement("teardown-twice", "A second teardown succeeds, or gets code 1006", RACES, rules.teardown_twice),
        Statement("license", "A licence request with both tokens gets a licence", LICENSES, rules.license_success),
        Statement("license-keeps", "After a licence the session goes on", LICENSES, rules.license_keeps_session),
        Statement("license-ended", "A torn-down session gets no licence", LICENSES, rules.license_ended),
        Statement("license-unknown", "An unknown session token gets no licence", LICENSES, rules.license_unknown),
        Statement(
            "license-session",
            "Without a session token there is no licence",
            LICENSES,
            rules.license_without_session,
            advice=True,
        ),
        Statement(
            "license-alone",
            "Without sessions, the content token gets a licence",
            LICENSES,
            rules.license_alone,
        ),
        Statement("license-token", "An unknown content token gets no licence", LICENSES, rules.license_token),
        Statement("renewal", "A renewal gets a licence and the next session token", RENEWALS, rules.renewal),
        Statement("certificate", "The certificate needs no token, and can be read", LICENSES, rules.certificate),
        Statement(
            "ckc", "The reply to an SPC has a CKC in a form of key servers", KEYS, key_servers.ckc(response_path)
        ),
        Statement("ckc-refused", "A body that is not an SPC gets no CKC", KEYS, key_servers.ckc_refused(response_path)),
        Statement("entitlement", "An allowed entitlement has a token URL", KEYS, key_servers.entitlement),
        Statement(
            "entitlement-denied", "An unknown content is denied, with a number", KEYS, key_servers.entitlement_denied
        ),
        Statement(
            "entitlement-id", "A messageID in the reply is that of the request", KEYS, key_servers.entitlement_message
        ),
        Statement("rights", "ExpressPlay answers the SPC at the token URL with a CKC", KEYS, key_servers.rights),
        Statement("rights-unknown", "An unknown rights token gets no CKC", KEYS, key_servers.rights_unknown),
        Statement("rights-error", "An error of ExpressPlay is a negative number", KEYS, key_servers.rights_error),
        Statement("lease", "A session lives for a period without a keep-alive", FAILS, rules.lease),
        Statement("lease-two", "A session lives for nearly two periods", FAILS, rules.long_lease),
        Statement("expiry", "A session without keep-alives expires within three periods", FAILS, rules.expiry, True),
    ]
    if limit is not None:
        found += [
            Statement("limit-reached", f"An account holds {limit} sessions", SESSION, limits.reached(limit)),
            Statement("limit", f"An account holds no more than {limit} sessions", SESSION, limits.held(limit)),
            Statement("limit-code", "A set-up above the limit gets code 1007", SESSION, limits.code(limit)),
            Statement("limit-token", "A refused set-up has no sessionToken", SESSION, limits.no_token(limit)),
            Statement("limit-others", "A refused set-up harms no other session", SESSION, limits.others_live(limit)),
            Statement("slot-free", "After a teardown the slot is free at once", SESSION, limits.frees_slot(limit)),
            Statement("refusal-free", "A refused set-up takes no slot", SESSION, limits.refusal_takes_none(limit)),
            Statement("limit-together", "Set-ups at the same time respect the limit", RACES, limits.together(limit)),
        ]
    return found


WAITING = frozenset({"lease", "lease-two", "expiry"})
"""The tags of the statements whose check must wait for a period or more."""


def needs_session(story: Story) -> bool:
    """Whether a story needs a session that was set up."""
    return any(isinstance(step, Ask) and step.token == "newest" and step.call not in WITHOUT_SESSION for step in story)


def stories(target: Target, limit: int | None, *, waits: bool) -> list[Story]:
    """Returns the stories. A story has more requests than one statement needs, so the check shortens each story that
    shows a fault."""
    sessions = _stories_of_sessions(target, limit, waits) if target.has_sessions else []
    return sessions + _stories_without_sessions(target)


def _stories_without_sessions(target: Target) -> list[Story]:
    found: list[Story] = []
    if target.asks_license and not target.has_sessions:
        found += [(Ask("license-alone"),)]
        if target.tokens:
            found += [(Ask("license-alone", token="unknown"), Ask("license-alone", token="none"))]
    if target.certificate is not None:
        found += [(Ask("certificate"),)]
    if target.key_server is not None:
        found += [(Ask("ckc"), Ask("ckc", token="unknown"))]
    if target.entitlement is not None:
        rights = Ask("rights")
        found += [(Ask("entitlement"), rights, Ask("rights", token="unknown")), (Ask("entitlement", token="unknown"),)]
    return found


def _stories_of_sessions(target: Target, limit: int | None, waits: bool) -> list[Story]:
    two = limit is None or limit >= 2
    setup, beat, end = Ask("setup"), Ask("heartbeat"), Ask("teardown")
    found: list[Story] = [
        (setup, end, beat, end),
        (setup, beat, beat, beat, end),
        (setup, beat, beat, Ask("heartbeat", token="previous"), beat, end),
        (setup, beat, beat, beat, Ask("heartbeat", token="older"), beat, end),
        (setup, Ask("heartbeat", capitals=True), beat, end, beat, end),
        (Ask("setup", token="none"), Ask("heartbeat", token="none"), Ask("teardown", token="none")),
        (Ask("setup", token="unknown"),),
        (setup, Ask("heartbeat", token="unknown"), Ask("teardown", token="unknown"), beat, end),
    ]
    if two:
        found += [
            (setup, Ask("setup", 1), beat, Ask("heartbeat", 1), end, Ask("heartbeat", 1), Ask("teardown", 1), beat),
        ]
    if target.asks_license:
        license, renew = Ask("license"), Ask("renew")
        found += [
            (setup, license, beat, license, beat, beat, end, license),
            (setup, license, renew, renew, end),
            (setup, Ask("license", token="unknown"), beat, end),
        ]
        if not target.v2:  # with SSP V2 such a request opens a session
            found += [(setup, Ask("license", token="content"), beat, end)]
    if limit is not None:
        fill = tuple(Ask("setup", number) for number in range(limit))
        more = Ask("setup", limit)
        found += [
            (*fill, end, more, *(Ask("heartbeat", number) for number in range(1, limit + 1))),
            (*fill, more),
            (*fill, more, more, *(Ask("heartbeat", number) for number in range(limit)), end, Pause(0.5), more),
            (Ask("setup", together=limit + 3),),
            (*fill[1:], Ask("setup", limit, together=4), end),
        ]
    if waits:
        found += [
            (setup, Wait(1.0), beat, Wait(1.0), beat, end),
            (setup, beat, Wait(1.8), beat, end),
            (setup, beat, Wait(3.2), beat, end),
        ]
    return found


def random_story(dice: random.Random, target: Target, limit: int | None) -> Story:
    """Returns a story of some requests in a random order."""
    most = 3 if limit is None else limit + 1
    calls: list[Call] = ["setup", "heartbeat", "heartbeat", "heartbeat", "teardown"]
    if target.asks_license and not target.v2:
        calls.append("license")
    steps: list[Ask | Wait | Pause] = [Ask("setup")]
    begun = {0}
    for _ in range(dice.randint(4, 12)):
        call = dice.choice(calls)
        session = dice.randrange(most)
        if call == "setup":
            if session in begun:
                continue
            begun.add(session)
            steps.append(Ask("setup", session))
            continue
        which: Which = "newest"
        if call == "heartbeat":
            which = dice.choice(("newest", "newest", "newest", "previous", "older", "unknown"))
        steps.append(Ask(call, session, which))
    return tuple(steps)
