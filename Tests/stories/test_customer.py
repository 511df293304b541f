"""Tests customer SSM, where the library calls the host, and the host sends the requests to its servers. In these tests
the host only records the calls in a list."""

from __future__ import annotations

import gc
import math
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import usher
from stage import Stage
from stage.customer import BEATS, RENEWALS, Portal, Response, play
from usher._c import abi, ffi

E = usher.EventType
S = usher.Status
FAIRPLAY = usher.KeySystem.FAIRPLAY


# ---- licences --------------------------------------------------------------------------------------------------------


def test_customer_firstLicence_opensTheSession(stage: Stage) -> None:
    """The library calls license() for the first licence; the host sets up the session and answers with CKC and period
    (customer SSM page; delegates.md: Customer SSM)."""
    portal = Portal(stage, BEATS)
    playback = play(stage, portal, tag="mine")
    stage.settle()
    assert (portal.names, playback.session_state) == ([], usher.SessionState.PENDING)
    license = playback.get_license(FAIRPLAY, b"spc", asset_id="asset")
    assert (license.data, license.period_ms, license.renew_type) == (b"licence", 60_000, usher.RenewType.HEARTBEAT)
    stage.settle()
    assert stage.events.only(E.SESSION_STARTED).period_ms == 60_000
    assert playback.session_state is usher.SessionState.ACTIVE
    (request,) = portal.license_requests
    assert (request.key_system, request.payload, request.type, request.asset_id) == (
        FAIRPLAY.value,
        b"spc",
        usher.LicenseType.REQUEST,
        b"asset",
    )
    assert (request.playback, request.tag) == (playback, "mine")
    assert stage.routes() == [], "the library itself sends no request"


@pytest.mark.parametrize("key_system", list(usher.KeySystem))
def test_customer_licenceOfEachKeySystem_isAskedByItsIdentifier(stage: Stage, key_system: usher.KeySystem) -> None:
    """The license() callback gets, as keySystem, the identifier that DASH ContentProtection uses for the key system
    (customer SSM page; delegates.md: Customer SSM)."""
    portal = Portal(stage, BEATS)
    playback = play(stage, portal)
    playback.get_license(f"urn:uuid:{key_system.value.lower()}", b"message")
    assert portal.license_requests[0].key_system == key_system.value
    if key_system is FAIRPLAY:
        assert portal.license_requests[0].key_system == "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2"


def test_customer_enforced_asksForARenewalEachPeriod(stage: Stage) -> None:
    """With renewType enforced, which is the default, the library calls license() for a renewal each period, with a
    fresh payload (customer SSM page; delegates.md: Customer SSM)."""
    portal = Portal(stage, RENEWALS)
    renewed: list[usher.License] = []
    playback = play(stage, portal, payload=lambda request: b"fresh", renewed=lambda p, license: renewed.append(license))
    assert playback.get_license(FAIRPLAY, b"first").renew_type is usher.RenewType.ENFORCED
    stage.advance(120_000)
    playback.close()
    stage.settle()
    assert portal.asked == [("license", 0), ("renewal", 60_000), ("renewal", 120_000), ("teardown", 120_000)]
    assert [request.payload for request in portal.license_requests] == [b"first", b"fresh", b"fresh"]
    assert [request.type.name for request in portal.license_requests] == ["REQUEST", "RENEWAL", "RENEWAL"]
    assert [(one.data, one.type) for one in renewed] == [(b"licence", usher.LicenseType.RENEWAL)] * 2
    assert stage.events.types().count("KEPT_ALIVE") == 2


def test_customer_heartbeatType_callsHeartbeatEachPeriod(stage: Stage) -> None:
    """With renewType heartbeat, the library calls heartbeat() each period, and never asks for a renewal
    (customer SSM page; delegates.md: Customer SSM)."""
    portal = Portal(stage, BEATS)
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(180_000)
    assert portal.asked == [("license", 0), ("heartbeat", 60_000), ("heartbeat", 120_000), ("heartbeat", 180_000)]
    assert stage.events.types().count("KEPT_ALIVE") == 3


@pytest.mark.parametrize(
    ("heartbeat_s", "period_ms"), [(1e-9, 50), (0.04, 50), (0.05, 50), (86_401, 86_401_000), (1e9, 10**12)]
)
def test_customer_periodTinyOrHuge_isBoundedBelow(stage: Stage, heartbeat_s: float, period_ms: int) -> None:
    """If the period in an answer is so short that it would overload the host's servers, the library raises it to 50 ms;
    it does not change a long period (delegates.md: Customer SSM)."""
    portal = Portal(stage, Response(b"licence", heartbeat_s=heartbeat_s, renew_type=usher.RenewType.HEARTBEAT))
    playback = play(stage, portal)
    assert playback.get_license(FAIRPLAY, b"spc").period_ms == period_ms
    stage.advance(200)
    assert portal.asked == [("license", 0), *(("heartbeat", at) for at in range(period_ms, 201, period_ms))]


@pytest.mark.parametrize("heartbeat_s", [0, 0.0])
def test_customer_withoutAPeriod_callsNothing(stage: Stage, heartbeat_s: float) -> None:
    """With heartbeat 0 the library does not call heartbeat() and asks for no renewal
    (customer SSM page; delegates.md: Customer SSM)."""
    portal = Portal(stage, Response(b"licence", heartbeat_s=heartbeat_s))
    playback = play(stage, portal)
    assert playback.get_license(FAIRPLAY, b"spc").period_ms == 0
    stage.advance(3_600_000)
    assert portal.names == ["license"]
    assert stage.events.only(E.SESSION_STARTED).period_ms == 0


def test_customer_fractionalPeriod_isKept(stage: Stage) -> None:
    """The period is in seconds, and may be a fraction (protocol.md: The session)."""
    portal = Portal(stage, Response(b"licence", heartbeat_s=2.5, renew_type=usher.RenewType.HEARTBEAT))
    playback = play(stage, portal)
    assert playback.get_license(FAIRPLAY, b"spc").period_ms == 2500
    stage.advance(10_000)
    assert portal.names == ["license"] + ["heartbeat"] * 4


def test_customer_renewalWithAnotherPeriod_changesIt(stage: Stage) -> None:
    """Each licence response may have a period; a later response changes it (customer SSM page)."""
    portal = Portal(stage, RENEWALS, Response(b"licence", heartbeat_s=30))
    playback = play(stage, portal, payload=lambda request: b"fresh")
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(120_000)
    assert portal.asked == [("license", 0), ("renewal", 60_000), ("renewal", 90_000), ("renewal", 120_000)]


def test_customer_renewalWithoutPeriod_endsThem(stage: Stage) -> None:
    """A later answer with the period 0 ends the renewals (delegates.md: Customer SSM)."""
    portal = Portal(stage, RENEWALS, Response(b"licence"))
    playback = play(stage, portal, payload=lambda request: b"fresh")
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(600_000)
    assert portal.names == ["license", "renewal"]


def test_customer_withoutHeartbeatCallback_lastsInSilence(stage: Stage) -> None:
    """Without a heartbeat callback the library calls nothing at the end of a period; the host keeps the session alive
    (delegates.md: Customer SSM)."""
    asked: list[str] = []
    delegate = usher.CustomerDelegate(stage.context, license=lambda request: asked.append("license") or BEATS)  # type: ignore[func-returns-value]
    playback = play(stage, delegate)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(300_000)
    assert (asked, playback.session_state) == (["license"], usher.SessionState.ACTIVE)
    assert "KEPT_ALIVE" not in stage.events.types()
    playback.close()
    stage.settle()
    assert stage.events.only(E.SESSION_ENDED).left, (
        "without a teardown callback the host's server still has the session"
    )
    playback.close()
    stage.settle()
    assert stage.events.types()[-1] == "PLAYBACK_CLOSED"


@pytest.mark.parametrize("renew_type", [usher.RenewType.DEFAULT, usher.RenewType.ENFORCED])
def test_customer_withThePairOfCallbacksAlone_isAskedForRenewals(stage: Stage, renew_type: usher.RenewType) -> None:
    """A host has only the callbacks license() and heartbeat(), and answers with an enforced licence. Each period the
    library calls license() with licenseType renewal and the last payload, and reports each new licence (customer SSM
    page)."""
    portal = Portal(stage, Response(b"licence", heartbeat_s=60, renew_type=renew_type))
    renewed: list[usher.License] = []
    playback = play(stage, portal, renewed=lambda playback, license: renewed.append(license))
    assert playback.get_license(FAIRPLAY, b"spc").renew_type is usher.RenewType.ENFORCED
    stage.advance(180_000)
    assert portal.asked == [("license", 0), *(("renewal", at) for at in (60_000, 120_000, 180_000))]
    assert [request.payload for request in portal.license_requests] == [b"spc"] * 4
    assert [license.data for license in renewed] == [b"licence"] * 3
    assert stage.events.types().count("KEPT_ALIVE") == 3
    assert stage.events.all(E.RENEWAL_DUE, E.HEARTBEAT_ERROR) == []


def test_customer_renewedByThePlayer_isAskedWithItsPayload(stage: Stage) -> None:
    """The player itself requests a renewal before a renewal is due. The library makes its next renewal one period
    later, with the player's new payload."""
    portal = Portal(stage, RENEWALS)
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"first")
    stage.advance(30_000)
    playback.get_license(FAIRPLAY, b"second", type=usher.LicenseType.RENEWAL)
    stage.advance(60_000)
    assert portal.asked == [("license", 0), ("renewal", 30_000), ("renewal", 90_000)]
    assert [request.payload for request in portal.license_requests] == [b"first", b"second", b"second"]


def test_customer_renewalByThePairThatFails_isAHeartbeatError(stage: Stage) -> None:
    """The host answers a renewal with the error that its server has ended the session. The library reports
    HEARTBEAT_ERROR, and asks for no more renewals."""
    portal = Portal(stage, RENEWALS, Response(http_status=400, service_code=1006, message="ended"))
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(300_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.service_code, error.operation, error.must_stop) == (1006, usher.Operation.RENEWAL, True)
    assert portal.names == ["license", "renewal"]


def test_customer_renewTypeNone_callsNothing(stage: Stage) -> None:
    """With renewType NONE the library calls neither heartbeat() nor license(), although the answer has a period."""
    portal = Portal(stage, Response(b"licence", heartbeat_s=60, renew_type=usher.RenewType.NONE))
    playback = play(stage, portal)
    assert playback.get_license(FAIRPLAY, b"spc").renew_type is usher.RenewType.NONE
    stage.advance(600_000)
    assert portal.names == ["license"]
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close()
    stage.settle()
    assert portal.names == ["license", "teardown"]


# ---- construct, then set the callback --------------------------------------------------------------------------------


class CustomerCallback:
    """The callback object of the customer SSM page. It has license(), and heartbeat() without parameters."""

    def __init__(self, answer: Response) -> None:
        self.answer = answer
        self.calls: list[str] = []

    def license(self, request: usher.CustomerRequest) -> Response:
        self.calls.append(request.type.name)
        return self.answer

    def heartbeat(self) -> None:
        self.calls.append("heartbeat")


@pytest.mark.parametrize("answer", [BEATS, RENEWALS])
def test_customerDelegate_constructedThenGivenItsCallback_plays(stage: Stage, answer: Response) -> None:
    """The host makes the delegate with the certificate, and then sets a callback object whose heartbeat() has no
    parameters and no result. The library calls this heartbeat() (customer SSM page)."""
    callback = CustomerCallback(answer)
    delegate = usher.CustomerDelegate(stage.context, certificate=b"\x30\x82 of the host", jitter_permille=usher.OFF)
    delegate.set_callback(callback)
    stage.context.set_delegate(delegate)
    playback = stage.player.play()
    assert playback.get_certificate() == b"\x30\x82 of the host"
    assert playback.get_license(FAIRPLAY, b"spc").data == b"licence"
    stage.advance(120_000)
    assert callback.calls == ["REQUEST", *(["heartbeat"] * 2 if answer is BEATS else ["RENEWAL"] * 2)]
    assert stage.events.all(E.HEARTBEAT_ERROR) == []
    playback.close()


def test_customerDelegate_withoutCallbacks_failsItsLicencesWithState(stage: Stage) -> None:
    """The host requests a licence before it has set the callbacks, and again after it has removed them. These requests
    fail with STATE; a request while the callbacks are set succeeds."""
    delegate = usher.CustomerDelegate(stage.context)
    playback = play(stage, delegate)
    for callback in (None, CustomerCallback(BEATS), None):
        delegate.set_callback(callback)
        if callback is None:
            with pytest.raises(usher.StateError):
                playback.get_license(FAIRPLAY, b"spc")
        else:
            assert playback.get_license(FAIRPLAY, b"spc").data == b"licence"


def test_setCallback_whilePlaying_replacesTheCallback(stage: Stage) -> None:
    """The host replaces the callback object while an item plays; the new object gets the next calls, and the library
    releases the old one."""
    first, second = CustomerCallback(BEATS), CustomerCallback(BEATS)
    delegate = usher.CustomerDelegate(stage.context, jitter_permille=usher.OFF)
    delegate.set_callback(first)
    playback = play(stage, delegate)
    playback.get_license(FAIRPLAY, b"spc")
    stage.advance(60_000)
    delegate.set_callback(second)
    gone = weakref.ref(first)
    assert first.calls == ["REQUEST", "heartbeat"]
    del first
    stage.advance(60_000)
    assert second.calls == ["heartbeat"]
    gc.collect()
    assert gone() is None


def test_setCallback_wrongly_isRefused(stage: Stage) -> None:
    """The library refuses a callback object without license(), and it refuses to set callbacks on a delegate that is no
    customer delegate."""
    delegate = usher.CustomerDelegate(stage.context)
    with pytest.raises(usher.InvalidArgumentError):
        delegate.set_callback(object())
    other = stage.delegate()
    with pytest.raises(usher.StateError):
        ffi.lib.usher_delegate_set_customer_callbacks(other._handle, None, None, abi.DestroyFn())


def test_customer_furtherLicence_goesToTheSameSession(stage: Stage) -> None:
    """A playback has one session: a further licence (for another track) opens no second session, and one teardown ends
    the session (delegates.md: Token map)."""
    portal = Portal(stage, BEATS)
    playback = play(stage, portal)
    playback.get_license(FAIRPLAY, b"video")
    playback.get_license(FAIRPLAY, b"audio")
    playback.close()
    stage.settle()
    assert portal.names == ["license", "license", "teardown"]
    assert stage.events.types().count("SESSION_STARTED") == 1


def test_customer_renewalBeforeALicence_isRefused(stage: Stage) -> None:
    """The library refuses a renewal before the first licence, because the playback has no session yet."""
    portal = Portal(stage, BEATS)
    playback = play(stage, portal)
    with pytest.raises(usher.StateError):
        playback.get_license(FAIRPLAY, b"spc", type=usher.LicenseType.RENEWAL)
    assert portal.names == []


def test_customer_certificate_isTheOneGiven(stage: Stage) -> None:
    """OTVCustomerSSMDelegate(certificate:): the library returns the certificate that the host gave as data
    (customer SSM page)."""
    playback = play(stage, Portal(stage, BEATS, certificate=b"\x30\x82 of the host"))
    assert playback.get_certificate() == b"\x30\x82 of the host"
    without = play(stage, Portal(stage, BEATS))
    with pytest.raises(usher.StateError):
        without.get_certificate()


def test_customer_payloadsAndLicences_areBytesOfAnySize(stage: Stage) -> None:
    """The library passes payloads and licences of up to 1 MiB unchanged."""
    payload, ckc = bytes(range(256)) * 4096, bytes(reversed(range(256))) * 4096
    portal = Portal(stage, Response(ckc))
    playback = play(stage, portal)
    assert playback.get_license(FAIRPLAY, payload).data == ckc
    assert portal.license_requests[0].payload == payload


# ---- licence callbacks that fail -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "kind", "http_status", "code", "message"),
    [
        (None, usher.CallbackError, -1, 0, ""),
        (Response(), usher.CallbackError, -1, 0, ""),
        (Response(http_status=503, message="down"), usher.HTTPStatusError, 503, 0, "down"),
        (Response(http_status=400, service_code=4711, message="not you"), usher.RefusedError, 400, 4711, "not you"),
    ],
)
def test_customer_withoutALicence_saysWhy(
    stage: Stage, answer: Any, kind: type[usher.UsherError], http_status: int, code: int, message: str
) -> None:
    """If the host answers without a licence, the request fails; the error has the status, code and message of the
    host's server (customer SSM page; seed-to-api.md: Notifications)."""
    playback = play(stage, Portal(stage, answer))
    with pytest.raises(kind) as caught:
        playback.get_license(FAIRPLAY, b"spc")
    error = caught.value
    assert (type(error), error.http_status, error.service_code) == (kind, http_status, code)
    assert message in error.message
    stage.settle()
    assert stage.events.error(E.LICENSE_ERROR).status is error.status
    assert error.must_stop


@pytest.mark.parametrize(
    ("answer", "origin"),
    [
        (None, usher.Origin.LOCAL),
        (Response(), usher.Origin.LOCAL),
        (Response(http_status=503), usher.Origin.LICENSE),
        (Response(http_status=503, origin=usher.Origin.SSM), usher.Origin.SSM),
        (Response(service_code=1006), usher.Origin.LICENSE),
        (Response(service_code=1006, origin=usher.Origin.SSM), usher.Origin.SSM),
        (Response(service_code=1006, origin=usher.Origin.LICENSE), usher.Origin.LICENSE),
    ],
)
def test_customer_withoutALicence_namesTheServerThatFailed(stage: Stage, answer: Any, origin: usher.Origin) -> None:
    """The host answers without a licence. If the answer has the status or code of a server, the origin of the error is
    the server that the answer names, by default the licence server. Otherwise the origin is LOCAL
    (delegates.md: Customer SSM)."""
    playback = play(stage, Portal(stage, answer))
    with pytest.raises(usher.UsherError) as caught:
        playback.get_license(FAIRPLAY, b"spc")
    stage.settle()
    assert caught.value.origin is stage.events.error(E.LICENSE_ERROR).origin is origin


def test_waitSession_beforeTheFirstLicenceRequest_isRefusedAtOnce(stage: Stage) -> None:
    """The session begins with the first licence request. If the host waits for the session before this request, the
    call fails at once with StateError; if it waits during the request, the call returns when the session begins
    (delegates.md: Customer SSM)."""
    portal = Portal(stage, lambda request: usher.LATER)
    playback = play(stage, portal)
    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(playback.wait_session)
        try:
            assert "the session begins with the first licence request" in str(refused.exception(10))
        finally:
            stage.advance(5000)  # if the library has not refused the call, this ends its wait
    license = playback.request_license(FAIRPLAY, b"spc")
    stage.settle()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(playback.wait_session)
        portal.license_requests[0].answer(BEATS)
        assert license.result(10).data == b"licence"
        waiting.result(10)


def test_customer_tooManySessions_isASetupError(stage: Stage) -> None:
    """The host sets up the session in its licence callback: if it answers with the code 1007, the library reports a
    set-up error with the status LIMIT (customer SSM page; errors.md: Words)."""
    playback = play(stage, Portal(stage, Response(http_status=400, service_code=1007, message="two screens already")))
    with pytest.raises(usher.LimitError) as caught:
        playback.get_license(FAIRPLAY, b"spc")
    stage.settle()
    assert "two screens" in caught.value.message
    told = stage.events.error(E.SETUP_ERROR)
    assert (told.status, told.service_code, told.must_stop) == (S.LIMIT, 1007, True)
    assert playback.session_state is usher.SessionState.FAILED


def test_customer_licenceThatFailed_canBeAskedAgain(stage: Stage) -> None:
    """If a licence fails for a reason other than the limit (here HTTP 503), no session is open yet; the next licence
    request opens one (delegates.md: Customer SSM)."""
    portal = Portal(stage, Response(http_status=503), BEATS)
    playback = play(stage, portal)
    with pytest.raises(usher.HTTPStatusError):
        playback.get_license(FAIRPLAY, b"spc")
    assert playback.get_license(FAIRPLAY, b"spc").data == b"licence"
    stage.advance(60_000)
    assert portal.names == ["license", "license", "heartbeat"]


def test_customer_neverLicensed_isNotTornDown(stage: Stage) -> None:
    """If the host has given no licence, the playback has no session, so the library does not call teardown
    (protocol.md: The session)."""
    portal = Portal(stage, Response(http_status=503))
    playback = play(stage, portal)
    with pytest.raises(usher.HTTPStatusError):
        playback.get_license(FAIRPLAY, b"spc")
    playback.close()
    stage.settle()
    assert portal.names == ["license"]
    assert stage.events.types() == ["LICENSE_ERROR", "PLAYBACK_CLOSED"]


@pytest.mark.callback_errors
@pytest.mark.parametrize(
    "answer",
    [
        Response(b"x", heartbeat_s=-1),
        Response(b"x", heartbeat_s=math.nan),
        Response(b"x", heartbeat_s=math.inf),
        Response(b"x", heartbeat_s=2e9),
        Response(b""),
        Response(b"x" * (2**20 + 1)),
        Response(b"x", renew_type=usher.RenewType.CDM),
        Response(message="a\0b"),
        b"bare bytes",
        7,
    ],
    ids=lambda answer: repr(answer)[:60],
)
def test_customer_answerThatMakesNoSense_failsWithItsReason(stage: Stage, answer: Any) -> None:
    """The library refuses an answer with a value out of range. The request fails, and the `__cause__` of its error is
    the exception that says why (customer SSM page)."""
    playback = play(stage, Portal(stage, answer))
    with pytest.raises(usher.CallbackError) as caught:
        playback.get_license(FAIRPLAY, b"spc")
    assert isinstance(caught.value.__cause__, (usher.InvalidArgumentError, TypeError, AttributeError))
    assert [name for name, _ in stage.callback_failures] == ["license"]


@pytest.mark.callback_errors
def test_customer_callbackThatRaises_isTheCauseOfTheFailure(stage: Stage) -> None:
    """If the callback raises an exception, the request fails, and the exception is the `__cause__` of the error
    (customer SSM page)."""

    def broken(request: Any) -> Any:
        raise ConnectionError("the portal is down")

    playback = play(stage, Portal(stage, broken, BEATS))
    with pytest.raises(usher.CallbackError) as caught:
        playback.get_license(FAIRPLAY, b"spc")
    assert type(caught.value.__cause__) is ConnectionError
    assert playback.get_license(FAIRPLAY, b"spc").data == b"licence"


# ---- answers that come later -----------------------------------------------------------------------------------------


def test_customer_answersLater_fromAnotherThread(stage: Stage) -> None:
    """The host may answer later, from any thread, when its server has replied (delegates.md: Customer SSM)."""
    portal = Portal(stage, lambda request: usher.LATER)
    playback = play(stage, portal)
    future = playback.request_license(FAIRPLAY, b"spc")
    stage.settle()
    assert not future.done()
    stage.call(portal.license_requests[0].answer, BEATS).result(10)
    assert future.result(10).data == b"licence"
    with pytest.raises(usher.InvalidCompletionError):
        portal.license_requests[0].answer(BEATS)


def test_customer_answersWithAFuture_whenItIsDone(stage: Stage) -> None:
    """The callback may return a concurrent.futures.Future; the library waits for it."""
    answer: Future[usher.LicenseResponse] = Future()
    playback = play(stage, Portal(stage, lambda request: answer))
    future = playback.request_license(FAIRPLAY, b"spc")
    stage.settle()
    assert not future.done()
    answer.set_result(BEATS)
    assert future.result(10).data == b"licence"


def test_customer_tooLate_timesOutAndIgnoresTheAnswer(stage: Stage) -> None:
    """The licence callback must answer within `license_timeout_ms`, 10 s by default; a later answer has no effect
    (protocol.md: Races)."""
    portal = Portal(stage, lambda request: usher.LATER)
    playback = play(stage, portal)
    future = playback.request_license(FAIRPLAY, b"spc")
    stage.advance(9_999)
    assert not future.done()
    stage.advance(1)
    assert type(future.exception(10)) is usher.UsherTimeoutError
    with pytest.raises(usher.InvalidCompletionError):
        portal.license_requests[0].answer(BEATS)
    assert playback.session_state is usher.SessionState.PENDING


def test_customer_closedWhileTheHostGetsALicence_tearsDownWithTheAnswer(stage: Stage) -> None:
    """If the playback closes before the licence callback has answered, the library waits for the answer, since the host
    may have opened a session. Then it calls the teardown callback (protocol.md: Races)."""
    portal = Portal(stage, lambda request: usher.LATER)
    playback = play(stage, portal)
    future = playback.request_license(FAIRPLAY, b"spc")
    stage.settle()
    playback.close()
    assert type(future.exception(10)) is usher.ClosedError
    stage.settle()
    assert portal.names == ["license"]
    portal.license_requests[0].answer(BEATS)
    stage.settle()
    assert portal.names == ["license", "teardown"]
    assert stage.events.types()[-1] == "PLAYBACK_CLOSED"


@pytest.mark.keeps_resources("the question that the host never answers stays open until its deadline")
def test_customer_closedAndNeverAnswered_isClosedAtTheCap(stage: Stage) -> None:
    """If the licence callback never answers, a close waits for the answer at most for `teardown_timeout_ms`
    (protocol.md: Races)."""
    portal = Portal(stage, lambda request: usher.LATER)
    playback = play(stage, portal)
    playback.request_license(FAIRPLAY, b"spc")
    stage.settle()
    playback.close()
    stage.advance(2_999)
    assert "PLAYBACK_CLOSED" not in stage.events.types()
    stage.advance(1)
    assert stage.events.types()[-1] == "PLAYBACK_CLOSED"
    assert portal.names == ["license"]


@pytest.mark.keeps_resources("the question that the host never answers stays open until its deadline")
@pytest.mark.parametrize("what", ["license", "heartbeat", "teardown"])
def test_customer_neverAnswered_endsWithTheContext(stage: Stage, what: str) -> None:
    """If the host never answers a question, the context still closes, and the library releases every callback object
    (`stage_factory` checks that)."""
    portal = Portal(stage, (lambda request: usher.LATER) if what == "license" else BEATS)
    portal.heartbeats = [lambda call: usher.LATER]
    if what == "teardown":
        portal.ends = lambda call: usher.LATER
    playback = play(stage, portal)
    playback.request_license(FAIRPLAY, b"spc")
    stage.advance(60_000 if what == "heartbeat" else 0)
    playback.close()
    stage.settle()
    stage.advance(600 if what == "teardown" else 0)
    assert portal.names[-1] == what
    stage.close()
    assert stage.events.types()[-1] == "PLAYBACK_CLOSED"
