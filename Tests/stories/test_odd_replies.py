"""Servers send hundreds of odd replies for each operation. A grammar makes these replies: status, Content-Type, coding
and body.

The tests know which replies have a licence. With any other reply, the request must fail with a documented status, and
the CDM must get nothing. If the head-end then still holds a session, the host must know this from an event. The session
table of the head-end shows whether it holds one.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

import usher
from stage import PERIOD_MS, Stage, StageFactory, fps, v2
from usher import EventType, Status
from usher.testing.headend import Fault, KeySystem
from usher.testing.headend.knobs import Certificate, Fps
from usher.testing.headend.network.replies import Reply

pytestmark = pytest.mark.many_connections("after many of these replies the library does not use the connection again")
CASES = {
    "setup": 70,
    "heartbeat": 70,
    "teardown": 70,
    "license": 170,
    "v2": 80,
    "certificate": 60,
    "key": 60,
    "renewal": 40,
    "renewal-wv": 40,
    "entitlement": 40,
    "token": 40,
}
"""The number of replies that the tests try for each operation."""

STATUSES = (200,) * 14 + (201, 202, 206, 301, 307, 400, 401, 403, 404, 429, 500, 502, 503)
TYPES = (
    "",
    "application/json",
    "application/octet-stream",
    "application/problem+json",
    "text/html",
    "text/html; charset=windows-1251",
    "text/plain",
    "image/png",
    "application/pdf",
    "application/json; charset=utf-16",
    "text/xml; charset=utf-8",
)
NOISE = bytes(number * 37 + 200 & 255 for number in range(60))
PAGE = b"<!DOCTYPE html><html><body>Sign in</body></html>"
FAULT = (
    b"<s:Envelope><s:Body><s:Fault><faultcode>s:Server</faultcode><faultstring>too many</faultstring>"
    b"<detail><Exception><StatusCode>0x8004c600</StatusCode></Exception></detail></s:Fault></s:Body></s:Envelope>"
)
CKC = b"\0\0\0\1" + NOISE[:20] + len(NOISE).to_bytes(4, "big") + NOISE
MESSAGE = b"\x08\x02\x12" + bytes([len(NOISE)]) + NOISE
BINARY = ("", "application/octet-stream", "application/vnd.example.license")
TAKEN = {"true": lambda true: true, "with a mark": lambda true: b"\xef\xbb\xbf" + true}
"""Bodies that the library accepts: the right reply, without and with a byte order mark."""
CONFIRMED = {"empty": b"", "blanks": b" \r\n", "code 0": b'{"errorCode":0}', "an object": b"{}"}
"""Bodies that confirm a heartbeat or a teardown, and contain no token and no licence."""
FOREIGN: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda true: true[: len(true) // 2],
    "UTF-16": lambda true: true.decode("latin-1").encode("utf-16"),
    "UTF-16 without mark": lambda true: true.decode("latin-1").encode("utf-16-be"),
    "page": lambda _: PAGE,
    "page after a comment": lambda _: b"<!-- " + b"x" * 70 + b" -->" + PAGE,
    "page after blanks": lambda _: b" " * 70 + PAGE,
    "XHTML": lambda _: b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>',
    "XML": lambda _: b"<error><code>7</code></error>",
    "sentence": lambda _: "Zugang für Kunden gesperrt".encode(),
    "Latin-1": lambda _: "Zugang für Kunden gesperrt".encode("latin-1"),
    "fault": lambda _: FAULT,
    "code": lambda _: b'{"errorCode":4000,"message":"internal"}',
    "code as text": lambda _: b'{"errorCode":"4000"}',
    "nested": lambda _: b'{"error":{"code":4000,"message":"internal"}}',
    "1007": lambda _: b'{"code":"1007"}',
    "half of a JSON": lambda _: b'{"sessionToken":',
    "UTF-16 with an umlaut": lambda _: '{"ü":1}'.encode("utf-16-le"),
    "UTF-16 in Cyrillic": lambda _: '{"ошибка":"нет доступа"}'.encode("utf-16-be"),
    "UTF-16 text": lambda _: "Ошибка доступа".encode("utf-16-le"),
    "red text": lambda _: b"\x1b[31mForbidden\x1b[0m",
    "text with a NUL": lambda _: b"access denied\0",
    "PNG": lambda _: b"\x89PNG\r\n\x1a\n" + NOISE,
    "PDF": lambda _: b"%PDF-1.7\n" + NOISE,
    "zip": lambda _: b"PK\x03\x04" + NOISE,
    "cut CKC": lambda _: b"\0\0\0\1" + NOISE,
    "cut Widevine licence": lambda _: b"\x08\x02\x12\x7f" + NOISE,
}
NO_LICENSES: dict[str, bytes] = {
    "base64 of text": b"Access denied by the server",
    "base64 of a page": PAGE,
    "base64 of a PNG": b"\x89PNG\r\n\x1a\n" + NOISE,
    "base64 of one byte": b"\x07",
}
"""Bytes that replace the licence, the CKC or the certificate in the JSON of a reply."""

REFUSALS = ("fault", "code", "code as text", "nested", "1007")


@dataclass(frozen=True)
class Odd:
    """One reply that the grammar of this file produces.

    Attributes:
        processed: whether the head-end processes the request before it sends this reply.
    """

    status: int
    kind: str
    coding: str
    body: str
    processed: bool

    @property
    def readable(self) -> bool:
        """Whether the library can decode the body."""
        return self.coding in ("", "identity", "gzip", "x-gzip", "deflate")

    @property
    def is_true(self) -> bool:
        """Whether the reply has a success status and the right body."""
        return self.body in TAKEN and self.readable and self.status < 300

    def edit(self, reply: Reply) -> Reply:
        """Makes this odd reply from the head-end's right reply, and returns it."""
        if self.body in NO_LICENSES:
            text = base64.b64encode(NO_LICENSES[self.body]).decode()
            body = json.dumps({"CkcMessage": text, "license": [text], "certificate": text}).encode()
        else:
            change = TAKEN.get(self.body) or FOREIGN.get(self.body) or (lambda _: CONFIRMED[self.body])
            body = change(reply.body or b'{"status":"OK"}')
        if self.coding in ("gzip", "x-gzip", "gzip, gzip", "gzip undeclared"):
            body = gzip.compress(body)
        if self.coding == "gzip, gzip":
            body = gzip.compress(body)
        if self.coding == "deflate":
            body = zlib.compress(body)
        declared = {"gzip of plain": "gzip", "gzip undeclared": ""}.get(self.coding, self.coding)
        headers = (("Content-Encoding", declared),) if declared else ()
        return replace(reply, status=self.status, body=body, content_type=self.kind, headers=headers)

    def fault(self) -> Fault:
        return Fault(str(self), effect=None if self.processed else False, edits=(self.edit,))


def odd_replies(operation: str, confirmed: bool) -> Iterator[tuple[int, Odd]]:
    """Returns the replies for one operation. Every run gets the same replies.

    Args:
        confirmed: whether a JSON object without a token confirms the request, as it does for heartbeats and teardowns.
    """
    dice = random.Random(f"odd {operation}")
    codings = ("",) * 5 + ("identity", "gzip", "gzip", "x-gzip", "deflate", "br", "gzip, gzip", "gzip of plain")
    for number in range(CASES[operation]):
        body = dice.choice([*TAKEN] * 3 + [*FOREIGN] + [*CONFIRMED] + ([] if confirmed else [*NO_LICENSES]))
        coding = dice.choice((*codings, "gzip undeclared") if body in TAKEN else codings)
        status = dice.choice(STATUSES)
        # In these tests, a reply that confirms a request means that the server has executed it, and a refusal means
        # that the server has not. Real servers send no other combinations.
        is_confirmed = body in TAKEN or (confirmed and body in CONFIRMED)
        may_process = status in (502, 504) or (status < 300 and body not in REFUSALS)
        processed = may_process and (is_confirmed or dice.random() < 0.5)
        yield number, Odd(status, dice.choice(TYPES), coding, body, processed)


def check_error(odd: Odd, error: usher.UsherError) -> None:
    """Checks that the error has the documented status."""
    if 300 <= odd.status < 400:
        allowed = {Status.REDIRECT}
    elif odd.status < 300:
        allowed = {Status.PROTOCOL, Status.REFUSED, Status.LIMIT}
    else:
        allowed = {Status.HTTP, Status.REFUSED, Status.LIMIT}
    assert error.status in allowed, odd
    assert error.http_status == odd.status, odd


def check_slot(stage: Stage, account: str, events: list[usher.Event], odd: Odd) -> None:
    """Checks that an event has told the host about each session that the head-end still holds."""
    if stage.headend.sessions.active(account):
        told = [e for e in events if e.orphan_possible or (e.error is not None and e.error.orphan_possible)]
        assert told or [e for e in events if e.type is EventType.TEARDOWN_ERROR], (odd, events)


def errors(events: list[usher.Event], *types: EventType) -> list[usher.UsherError]:
    return [event.error for event in events if event.type in types and event.error is not None]


def play(stage: Stage, number: int, **options: Any) -> usher.Playback:
    """Starts a playback with a new account, and returns it."""
    token = stage.headend.content_token(account=f"account {number}")
    return stage.play(token, player=usher.Player(stage.context), tag=number, **options)


def end(stage: Stage, playback: usher.Playback, number: int, odd: Odd) -> list[usher.Event]:
    """Closes the playback, and returns its events. Checks that they tell the host if the head-end still holds the
    session."""
    playback.close()
    stage.advance(8_000)
    events = stage.events.all(tag=number)
    assert events[-1].type is EventType.PLAYBACK_CLOSED, (odd, events)
    check_slot(stage, f"account {number}", events, odd)
    stage.headend.faults.clear()
    stage.events.clear()
    return events


@pytest.fixture
def odd_stage(stage_factory: StageFactory) -> Iterator[Stage]:
    stage = stage_factory(
        headend={
            "token_rotation": "accept_previous",
            "fps": Fps(reply="json"),
            "certificate": Certificate(form="pem"),
        }
    )
    yield stage
    stage.headend.sessions.clear()


RULES = pytest.mark.breaks_rules("late-beat", "after-teardown", "stale-token")


@RULES
def test_setup_answeredOddly_startsOrFailsAndLosesNoSlotUntold(odd_stage: Stage) -> None:
    for number, odd in odd_replies("setup", confirmed=False):
        odd_stage.headend.faults.add("setup", odd.fault())
        playback = play(odd_stage, number)
        odd_stage.settle()
        events = end(odd_stage, playback, number, odd)
        assert odd.is_true == (events[0].type is EventType.SESSION_STARTED), (odd, events)
        for error in errors(events, EventType.SETUP_ERROR):
            check_error(odd, error)


@RULES
def test_heartbeat_answeredOddly_isConfirmedOrRetriedOrRefused(odd_stage: Stage) -> None:
    for number, odd in odd_replies("heartbeat", confirmed=True):
        playback = play(odd_stage, number)
        odd_stage.settle()
        odd_stage.headend.faults.add("heartbeat", odd.fault())
        odd_stage.advance(PERIOD_MS + 15_000)
        events = end(odd_stage, playback, number, odd)
        failed = errors(events, EventType.HEARTBEAT_ERROR)
        assert len(failed) + len([e for e in events if e.type is EventType.KEPT_ALIVE]) == 1, (odd, events)
        for error in failed:
            check_error(odd, error)
        assert not (odd.is_true and failed), (odd, events)


@RULES
def test_teardown_answeredOddly_endsTheSessionOrSaysThatItDoesNot(odd_stage: Stage) -> None:
    for number, odd in odd_replies("teardown", confirmed=True):
        playback = play(odd_stage, number)
        odd_stage.settle()
        odd_stage.headend.faults.add("teardown", odd.fault(), times=4)
        events = end(odd_stage, playback, number, odd)
        for error in errors(events, EventType.TEARDOWN_ERROR):
            check_error(odd, error)
            assert not odd.is_true, (odd, events)


def expected_license(system: KeySystem, body: bytes) -> bytes:
    """Returns the licence in the body of a right reply."""
    if system in ("clearkey", "playready"):
        return body
    value = json.loads(body)
    return base64.b64decode(value["CkcMessage"] if system == "fairplay" else value["license"][0])


class Watched:
    """A fault that also stores the right reply, for the checks after it."""

    def __init__(self, odd: Odd) -> None:
        self.right = b""
        self._odd = odd

    def fault(self) -> Fault:
        return replace(self._odd.fault(), edits=(self._remember, self._odd.edit))

    def _remember(self, reply: Reply) -> Reply:
        self.right = reply.body
        return reply


@RULES
@pytest.mark.parametrize("system", ["clearkey", "fairplay", "playready", "widevine"])
@pytest.mark.parametrize("operation", ["license", "v2"])
def test_licence_answeredOddly_reachesTheCDMOnlyIfItIsOne(odd_stage: Stage, operation: str, system: KeySystem) -> None:
    systems = sorted(v2.SYSTEMS)
    for number, odd in odd_replies(operation, confirmed=False):
        if systems[number % 4] != system:
            continue
        watched = Watched(odd)
        odd_stage.headend.faults.add("license", watched.fault())
        delegate = (
            v2.delegate(odd_stage, system, teardown_on_close=True) if operation == "v2" else odd_stage.delegate(system)
        )
        playback = play(odd_stage, number, delegate=delegate)
        odd_stage.settle()
        answer = v2.ask(playback, system)
        odd_stage.settle()
        assert answer.done(), odd
        error = answer.exception(0)
        if odd.is_true:
            assert error is None and answer.result(0).data == expected_license(system, watched.right), (odd, error)
        else:
            assert isinstance(error, usher.UsherError), (odd, answer.result(0).data)
            check_error(odd, error)
        end(odd_stage, playback, number, odd)


def test_certificate_answeredOddly_isKeptOnlyIfItIsOne(odd_stage: Stage) -> None:
    url = odd_stage.headend.certificate_url("fairplay")
    right = odd_stage.headend._service.fairplay_certificate
    for number, odd in odd_replies("certificate", confirmed=False):
        odd_stage.headend.faults.add("certificate", odd.fault())
        playback = play(odd_stage, number, delegate=odd_stage.delegate("fairplay", certificate_url=url))
        answer = playback.request_certificate()
        odd_stage.settle()
        error = answer.exception(0)
        if odd.is_true:
            assert error is None and answer.result(0) == right, (odd, error)
        else:
            assert isinstance(error, usher.UsherError), (odd, answer.result(0)[:40])
            check_error(odd, error)
        end(odd_stage, playback, number, odd)


def test_key_answeredOddly_reachesTheCDMOnlyIfItIsOne(odd_stage: Stage) -> None:
    fps.ready(odd_stage)
    cdm = fps.CDM()
    fps.loader(odd_stage, cdm)
    for number, odd in odd_replies("key", confirmed=False):
        odd_stage.headend.faults.add("ckc", odd.fault())
        playback = play(odd_stage, number, delegate=None)
        answer = odd_stage.call(playback.get_resource, fps.SKD)
        odd_stage.until(answer.done)
        odd_stage.settle()
        error = answer.exception(0)
        if odd.is_true:
            assert error is None and cdm.opened(answer.result(0))[0], (odd, error)
        else:
            assert isinstance(error, usher.UsherError), (odd, answer.result(0)[:40])
            check_error(odd, error)
        end(odd_stage, playback, number, odd)


def renewing(stage_factory: StageFactory, *systems: KeySystem) -> Stage:
    return stage_factory(headend={"token_rotation": "accept_previous", "enforced": set(systems), "grace": 600.0})


@RULES
def test_renewal_answeredOddly_reachesTheCDMOnlyIfItIsOne(stage_factory: StageFactory) -> None:
    """Renewals keep the session alive: the library asks the host for a payload in each period. If the reply to a
    renewal has no licence, the host gets no renewed licence and no KEPT_ALIVE."""
    stage = renewing(stage_factory, "clearkey", "fairplay", "playready")
    systems: list[KeySystem] = ["clearkey", "fairplay", "playready"]
    for number, odd in odd_replies("renewal", confirmed=False):
        system = systems[number % 3]
        watched = Watched(odd)
        renewed: list[usher.License] = []
        playback = play(
            stage,
            number,
            delegate=v2.delegate(stage, system, teardown_on_close=True),
            payload=lambda request, system=system: v2.PAYLOAD[system],
            renewed=lambda _, license, renewed=renewed: renewed.append(license),
        )
        v2.licence(playback, system)
        stage.headend.faults.add("license-renewal", watched.fault(), always=True)
        stage.advance(PERIOD_MS + 100)
        taken = [expected_license(system, watched.right)] if odd.is_true else []
        assert [license.data for license in renewed] == taken, (odd, renewed)
        assert odd.is_true == bool(stage.events.all(EventType.KEPT_ALIVE, tag=number)), (
            odd,
            stage.events.types(number),
        )
        end(stage, playback, number, odd)
    stage.headend.sessions.clear()


@RULES
def test_widevineRenewal_answeredOddly_reachesTheCDMOnlyIfItIsOne(stage_factory: StageFactory) -> None:
    """The Widevine CDM renews its licence at the session manager."""
    stage = renewing(stage_factory, "widevine")
    for number, odd in odd_replies("renewal-wv", confirmed=False):
        watched = Watched(odd)
        playback = play(stage, number, delegate=v2.delegate(stage, "widevine", teardown_on_close=True))
        v2.licence(playback, "widevine")
        stage.headend.faults.add("renewal-wv", watched.fault())
        answer = v2.ask(playback, "widevine", type=usher.LicenseType.RENEWAL)
        stage.settle()
        error = answer.exception(0)
        if odd.is_true:
            value = json.loads(watched.right)["license"]
            right = base64.b64decode(value if isinstance(value, str) else value[0])
            assert error is None and answer.result(0).data == right, (odd, error)
        else:
            assert isinstance(error, usher.UsherError), (odd, answer.result(0).data)
            check_error(odd, error)
        end(stage, playback, number, odd)
    stage.headend.sessions.clear()


@pytest.mark.parametrize("operation", ["entitlement", "token"])
def test_loaderServer_answeredOddly_bringsAKeyOnlyIfItIsTheRightReply(odd_stage: Stage, operation: str) -> None:
    """The loader asks the entitlement server for the token URL, and sends the SPC to this URL. The operation `token` is
    the second of these requests. The right reply to `token` is the bytes of a test CKC. The library does not know the
    form of these bytes, so it takes them for a CKC only if they have no byte order mark and are sent as binary data."""
    fps.ready(odd_stage)
    cdm = fps.CDM()
    fps.loader(odd_stage, cdm, route=usher.Route.ENTITLEMENT, entitlement_url=odd_stage.headend.entitlement_url)
    for number, odd in odd_replies(operation, confirmed=False):
        is_right = odd.is_true
        if operation == "token" and odd.is_true:
            odd = replace(odd, body="true")
            is_right = odd.kind in BINARY
        odd_stage.headend.faults.add("entitlement" if operation == "entitlement" else "rights", odd.fault())
        playback = play(odd_stage, number, delegate=None)
        answer = odd_stage.call(playback.get_resource, fps.SKD)
        odd_stage.until(answer.done)
        odd_stage.settle()
        error = answer.exception(0)
        if is_right:
            assert error is None and cdm.opened(answer.result(0))[0], (odd, error)
        else:
            assert isinstance(error, usher.UsherError), (odd, answer.result(0)[:40])
            check_error(odd, error)
        end(odd_stage, playback, number, odd)


@pytest.mark.parametrize("system", ["fairplay", "widevine"])
def test_licenceOfBytes_reachesTheCDMOnlyIfTypeAndFormAllowIt(odd_stage: Stage, system: KeySystem) -> None:
    """The licence server sends bytes, not JSON. If they have the public form of a CKC or of a Widevine licence, the CDM
    gets them with every Content-Type. It gets bytes of an unknown form only if the Content-Type is empty,
    application/octet-stream or an unknown type."""
    playback = play(odd_stage, 1, delegate=odd_stage.delegate(system))
    odd_stage.settle()
    kinds = [kind for kind in TYPES if "utf-16" not in kind] + ["application/vnd.example.license"]
    known = {"CKC": CKC, "message": MESSAGE}
    others = {"unknown": NOISE, "cut CKC": CKC[:-1], "cut message": MESSAGE[:-1], "one byte": b"\x07"}
    for kind in kinds:
        for name, body in (known | others).items():
            reply = Fault.reply(200, body=body, content_type=kind)
            odd_stage.headend.faults.add("license", reply)
            answer = v2.ask(playback, system)
            odd_stage.settle()
            if name in known or (name == "unknown" and kind in BINARY):
                assert answer.result(0).data == body, (kind, name)
            else:
                assert isinstance(answer.exception(0), usher.ProtocolError), (kind, name, answer)
    playback.close(usher.CloseMode.TEARDOWN)
    odd_stage.settle()


def test_grammar_makesFiveHundredReplies() -> None:
    assert sum(CASES.values()) >= 500
