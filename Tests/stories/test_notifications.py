"""Tests the errors that the application gets for set-up, heartbeat and teardown: errorCode, HTTP status, message and
explanation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import usher
from stage import CHALLENGE, REAL_TIMEOUT_S, Stage, StageFactory
from usher.testing.headend import Fault

E = usher.EventType
S = usher.Status
CLEARKEY = usher.KeySystem.CLEARKEY
LegacyCodes = usher.LegacyCodes

SSM_CODES = [1000, 1001, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013, 1017, 1018, 3001, 3004, 4000, 4001]
"""All error codes of the SSM that docs/errors.md explains."""
LICENSE_CODES = [
    *range(1001, 1011),
    *(2001, 2002, 2102, 2103, 2104),
    *range(3001, 3012),
    *range(4000, 4023),
    *(4024, 4025, 4027),
]
"""All error codes in the table of the SSP licence service in docs/errors.md."""


def failing(stage: Stage, route: str, fault: Fault) -> usher.UsherError:
    """Returns the error of the notification that this fault causes on set-up, heartbeat or teardown."""
    stage.headend.faults.add(route, fault, always=True)
    playback = stage.play(delegate=stage.delegate(retry_permille=usher.OFF, teardown_retries=usher.OFF))
    stage.advance(60_000 if route == "heartbeat" else 0)
    if route == "teardown":
        playback.close()
        stage.settle()
    kind = {"setup": E.SETUP_ERROR, "heartbeat": E.HEARTBEAT_ERROR, "teardown": E.TEARDOWN_ERROR}[route]
    return stage.events.error(kind)


OPERATIONS = {
    "setup": usher.Operation.SETUP,
    "heartbeat": usher.Operation.HEARTBEAT,
    "teardown": usher.Operation.TEARDOWN,
}


# ---- the three notifications -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["heartbeat", pytest.param("teardown", marks=pytest.mark.leaves_session)])
def test_notification_ofAnSsmError_hasCodeHttpStatusAndMessage(stage: Stage, route: str) -> None:
    """userInfo has errorCode (the code of the session manager), code (the HTTP status) and message
    (SSM v1 page; seed-to-api.md: Notifications)."""
    error = failing(stage, route, Fault.error(1011, status=409, message="bad request, it says"))
    assert (error.service_code, error.http_status, error.message) == (1011, 409, "bad request, it says")
    assert (error.origin, error.operation, error.status) == (usher.Origin.SSM, OPERATIONS[route], S.REFUSED)
    assert error.must_stop is (route != "teardown"), "a teardown error names a playback that has stopped already"


@pytest.mark.parametrize("code", SSM_CODES)
def test_setupNotification_ofEachSsmCode_isExplained(stage: Stage, code: int) -> None:
    """For each code of the session manager the host gets status and explanation; only 1007 is reported as the limit
    (errors.md: Words)."""
    error = failing(stage, "setup", Fault.error(code, message=f"code {code}"))
    assert (error.service_code, error.http_status, error.message) == (code, 400, f"code {code}")
    assert error.status is (S.LIMIT if code == 1007 else S.REFUSED)
    assert type(error) is (usher.LimitError if code == 1007 else usher.RefusedError)
    words = error.explain()
    assert (words.known, words.source) == (True, "SSM error codes")
    assert words.summary.endswith(".")
    assert words.advice.endswith(".")
    assert error.legacy_codes == LegacyCodes(6004 if code == 1007 else 6001, -1352, code, 3010, 400)


@pytest.mark.parametrize(
    ("fault", "status", "http_status"),
    [
        (Fault.drop(), S.TRANSPORT, -1),
        (Fault.reset(), S.TRANSPORT, -1),
        (Fault.status(503), S.HTTP, 503),
        (Fault.status(404), S.HTTP, 404),
        (Fault.html_page(500), S.HTTP, 500),
        (Fault.html_page(), S.PROTOCOL, 200),
        (Fault.reply(400, body={"error": "no number"}), S.HTTP, 400),
        (Fault.reply(400, body={"errorCode": "no number"}), S.HTTP, 400),
        (Fault.redirect("http://127.0.0.1:1/"), S.REDIRECT, 302),
    ],
    ids=lambda value: getattr(value, "label", str(value)),
)
def test_setupNotification_withoutAnSsmCode_hasTheHttpStatusOrMinusOne(
    stage: Stage, fault: Fault, status: usher.Status, http_status: int
) -> None:
    """The notification's `code` is the HTTP status, or -1 without a response. If the body has no error code that is a
    number, the notification has no `errorCode` (SSM v1 page; seed-to-api.md: Notifications)."""
    error = failing(stage, "setup", fault)
    assert (error.status, error.http_status, error.service_code) == (status, http_status, 0)
    assert error.legacy_codes == LegacyCodes(6001, -1352, 0, 3010, http_status)
    assert error.explain().source == "library status"
    assert not error.explain().known
    assert error.must_stop


@pytest.mark.parametrize(
    ("status", "summary", "advice"),
    [
        (401, "sign-in", "Sign in again"),
        (403, "did not allow", "subscription"),
        (404, "does not have this service", "address"),
        (407, "proxy", "proxy"),
        (413, "too large", "tokens"),
        (418, "could not read", "address"),
        (429, "too many requests", "few minutes"),
        (431, "too large", "tokens"),
        (503, "has a problem", "few minutes"),
    ],
)
def test_setupError_ofAnHttpStatus_isExplainedByTheStatus(stage: Stage, status: int, summary: str, advice: str) -> None:
    """A server refuses set-up with an HTTP status and without a code; the explanation depends on the HTTP status
    (errors.md: Words)."""
    words = failing(stage, "setup", Fault.status(status)).explain()
    assert summary in words.summary
    assert advice in words.advice


@pytest.mark.parametrize(
    ("route", "words"),
    [("setup", "sign-in"), pytest.param("heartbeat", "session is no longer valid", marks=pytest.mark.leaves_session)],
)
def test_1006_isExplainedByTheOperation(stage: Stage, route: str, words: str) -> None:
    """The session manager does not accept a token (1006). At set-up this is the content token, so the explanation
    mentions the sign-in. At a heartbeat this is the session token, so the explanation mentions the session."""
    assert words in failing(stage, route, Fault.error(1006)).explain().summary


@pytest.mark.parametrize("route", ["setup", "license"])
def test_error_ofAReplyWithRetryAfter_saysHowLongToWait(stage: Stage, route: str) -> None:
    """A server replies to set-up or to a licence request with Retry-After. The library does not retry these requests;
    the error tells the host how long to wait."""
    stage.headend.faults.add(route, Fault.reply(503, headers={"Retry-After": "7"}, body={}))
    playback = stage.play()
    stage.settle()
    if route == "license":
        with pytest.raises(usher.HTTPStatusError) as caught:
            stage.clear_keys(playback)
        assert caught.value.retry_after == 7
    else:
        assert stage.events.error(E.SETUP_ERROR).retry_after == 7


def test_log_ofAPlayback_hasItsTag_theHttpStatusAndTheCode(stage: Stage) -> None:
    """Lines of the log about a playback have its tag; a line about an error has the HTTP status and the code of the
    server."""
    stage.headend.faults.add("setup", Fault.error(4000, status=503, message="out of order"))
    stage.play(tag="screen 1")
    stage.settle()
    errors = [line for line in stage.logs if "SETUP_ERROR" in line]
    assert len(errors) == 1
    assert errors[0].endswith(" (tag screen 1): SETUP_ERROR: USHER_E_REFUSED: out of order, HTTP 503, code 4000")


def test_threads_ofTheLibrary_haveNames(stage: Stage) -> None:
    """The library names its threads, so that a debugger shows which threads belong to it. A thread names itself when it
    first runs, which may be later than the first playback."""
    stage.play()
    stage.settle()
    wanted = {"usher-io", "usher-watchdog", "usher-callback"}
    stage.until(lambda: wanted <= {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")})


@pytest.mark.parametrize(
    ("route", "codes"),
    [
        ("heartbeat", LegacyCodes(6003, -1353, 4000, 3030, 500)),
        pytest.param("teardown", LegacyCodes(6002, -1354, 4000, 3020, 500), marks=pytest.mark.leaves_session),
    ],
)
def test_notification_ofEachOperation_hasTheNumbersOfOtherPlayers(
    stage: Stage, route: str, codes: usher.LegacyCodes
) -> None:
    """`legacy_codes` has the numbers that the SDKs use for this error: 30x0 for Apple, `what` and `extra` for Android,
    600x for React Native (seed-to-api.md: Notifications)."""
    assert failing(stage, route, Fault.error(4000, status=500)).legacy_codes == codes


def test_notification_ofAServerMessageWithATokenInIt_doesNotTellTheToken(stage: Stage) -> None:
    """If the server's message contains a token, the library removes the token from the error message."""
    token = stage.headend.content_token()
    stage.headend.faults.add("setup", Fault.error(1006, message=f"invalid token {token} given"))
    stage.play(token)
    stage.settle()
    message = stage.events.error(E.SETUP_ERROR).message
    assert token not in message
    assert message.startswith("invalid token ")


@pytest.mark.parametrize("when", ["before", "after"])
def test_waitSession_whenSetupFails_raisesTheWholeError(stage: Stage, when: str) -> None:
    """Set-up fails while the host waits for the session, or before the host waits. In both cases wait_session() raises
    an error with all fields of the event's error."""
    stage.headend.faults.add("setup", Fault.error(1007, status=409, message="too many"))
    playback = stage.player.play(delegate=stage.delegate())
    token = stage.headend.content_token()
    if when == "after":
        playback.set_content_token(token)
        stage.settle()
    waiting = stage.call(playback.wait_session)
    if when == "before":
        assert stage.still_waiting(waiting)
        playback.set_content_token(token)
    with pytest.raises(usher.LimitError) as caught:
        waiting.result(REAL_TIMEOUT_S)
    error = caught.value
    assert (error.http_status, error.service_code, error.message) == (409, 1007, "too many")
    assert (error.origin, error.operation, error.must_stop) == (usher.Origin.SSM, usher.Operation.SETUP, True)
    stage.settle()


def test_setupError_1007_isTheLimitOnlyFromTheSessionManager(stage: Stage) -> None:
    """Code 1007 of a licence server does not mean the limit of streams: licence servers use this number for an invalid
    date (errors.md: Words)."""
    playback = stage.play()
    stage.settle()
    stage.headend.faults.add("license", Fault.error(1007))
    with pytest.raises(usher.RefusedError) as caught:
        stage.clear_keys(playback)
    assert type(caught.value) is usher.RefusedError
    assert (caught.value.origin, caught.value.service_code) == (usher.Origin.LICENSE, 1007)
    assert caught.value.explain() != usher.explain(1007, usher.Origin.SSM, status=S.LIMIT)


# ---- licence errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", LICENSE_CODES)
def test_licenceError_ofEachCode_isExplained(stage_factory: StageFactory, code: int) -> None:
    """For each code of the SSP licence service, the host gets the explanation of this code (errors.md: Words)."""
    stage = stage_factory(headend={"ssm_required": "never"})
    playback = stage.play(delegate=stage.delegate(ssm_url=None))
    stage.headend.faults.add("license", Fault.error(code, message=f"code {code}"))
    with pytest.raises(usher.RefusedError) as caught:
        playback.get_license(CLEARKEY, CHALLENGE)
    error = caught.value
    assert (error.service_code, error.http_status, error.message, error.origin) == (
        code,
        400,
        f"code {code}",
        usher.Origin.LICENSE,
    )
    words = error.explain()
    assert (words.known, words.source) == (True, "SSP licence service error codes")
    assert words.summary.endswith(".")
    assert error.legacy_codes == LegacyCodes(5006, 0, 0, 3050, 400)
    stage.settle()
    assert stage.events.error(E.LICENSE_ERROR).service_code == code


@pytest.mark.parametrize(
    ("code", "subject", "remedy"),
    [
        (1007, "date", "clock"),
        (1008, "not set up", "tenant"),
        (2002, "device", "DRM software"),
        (3005, "sign-in", "content token"),
        (4005, "expired", "Start the stream again"),
        (4006, "used already", "fresh content token"),
        (4008, "not secure enough", "stronger protection"),
        (4009, "another operator", "tenant"),
        (4011, "keys", "keys of the content"),
        (4017, "disabled", "operator"),
        (4018, "not known", "Register"),
        (4020, "account", "subscription"),
        (4021, "did not allow", "subscription"),
        (-2002, "no longer valid", "fresh licence token"),
        (-2003, "another network", "this network"),
        (-4001, "device", "DRM software"),
        (-6003, "could not use", "tokens are made"),
        (-6006, "account", "Operator"),
    ],
)
def test_licenceError_ofACode_saysWhatIsWrongAndWhatHelps(lib: Any, code: int, subject: str, remedy: str) -> None:
    """The explanation of an error code says what is wrong and what to do (errors.md: Words)."""
    words = usher.explain(code, usher.Origin.LICENSE, status=S.REFUSED)
    assert subject in words.summary
    assert remedy in words.advice
    assert words.summary[0].isupper()
    assert words.summary.endswith(".")


@pytest.mark.parametrize(
    "code", sorted({-1, 1, 999, 1011, 2000, 2003, 2050, 2101, 2105, 3000, 3012, 3999, 4023, 4026, 4028, 10**12})
)
def test_explanation_ofALicenceCodeInNoList_saysSo(lib: Any, code: int) -> None:
    """A licence code that is in no table gets a general explanation (errors.md: Words)."""
    words = usher.explain(code, usher.Origin.LICENSE, status=S.REFUSED)
    assert (words.known, words.source) == (False, "library status; the code is in no table")
    assert words.summary == usher.explain(0, usher.Origin.LICENSE, status=S.REFUSED).summary


@pytest.mark.parametrize("code", [1, 999, 1002, 1010, 1014, 1015, 1016, 3002, 3003, 4002, 10**12])
def test_explanation_ofAnSsmCodeInNoList_saysSo(lib: Any, code: int) -> None:
    """1002, 1010, 1014-1016, 3002 and 3003 are not documented publicly and get a general explanation
    (errors.md: Words)."""
    assert not usher.explain(code, usher.Origin.SSM, status=S.REFUSED).known


@pytest.mark.parametrize("status", [status for status in S if status is not S.OK])
def test_explanation_ofEveryStatus_hasSummaryAndAdvice(lib: Any, status: usher.Status) -> None:
    """If the server sent no error code, explain() explains the library's status."""
    words = usher.explain(0, usher.Origin.LOCAL, status=status)
    assert words.summary.endswith(".")
    assert words.advice.endswith(".")
    assert (words.known, words.source) == (False, "library status")


LEGACY = [
    (S.NO_TOKEN, usher.Operation.SETUP, LegacyCodes(5022, -1352, 0, 3010, -1)),
    (S.NO_TOKEN, usher.Operation.LICENSE, LegacyCodes(5022, 0, 0, 3050, -1)),
    (S.PROTOCOL, usher.Operation.LICENSE, LegacyCodes(5005, 0, 0, 3050, -1)),
    (S.HTTP, usher.Operation.CERTIFICATE, LegacyCodes(5006, 0, 0, 3050, -1)),
    (S.SESSION, usher.Operation.LICENSE, LegacyCodes(5004, 0, 0, 3050, -1)),
    (S.DECLINED, usher.Operation.LICENSE, LegacyCodes(5001, 0, 0, 3050, -1)),
    (S.CALLBACK, usher.Operation.LICENSE, LegacyCodes(5006, 0, 0, 3040, -1)),
    (S.CALLBACK, usher.Operation.HEARTBEAT, LegacyCodes(6003, -1353, 0, 3040, -1)),
    (S.RENEWAL_MISSED, usher.Operation.RENEWAL, LegacyCodes(6003, -1353, 0, 3050, -1)),
    (S.OK, usher.Operation.NONE, LegacyCodes(0, 0, 0, 0, -1)),
]


@pytest.mark.parametrize(("status", "operation", "codes"), LEGACY)
def test_legacyCodes_ofErrorsOfTheLibrary_areTheUnifiedOnes(
    lib: Any, status: S, operation: usher.Operation, codes: LegacyCodes
) -> None:
    """In React Native's numbers licence errors are 50xx, and a missing token is 5022. In Apple's numbers an error of
    the host's callback is 3040 (seed-to-api.md: Notifications)."""
    assert usher.UsherError("", status=status, operation=operation).legacy_codes == codes


# ---- one report for a screen -----------------------------------------------------------------------------------------


def shown(stage: Stage, *answers: BaseException | None) -> list[usher.UsherError]:
    """Returns the errors that a screen shows if it follows the rule of errors.md: those with must_stop that no event
    has reported before."""
    errors = [event.error for event in stage.events.all()] + list(answers)
    return [e for e in errors if isinstance(e, usher.UsherError) and e.must_stop and not e.already_reported]


def test_refusedSetup_withALicenceThatWaits_isShownOnce(stage: Stage) -> None:
    """The head-end refuses set-up while a licence request waits. SETUP_ERROR reports the failure first; the
    LICENSE_ERROR and the answer that follow say that the failure was already reported
    (errors.md: `already_reported`)."""
    stage.headend.faults.add("setup", Fault.error(1007, message="too many"))
    playback = stage.play()
    waiting = playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    stage.settle()
    later = playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    stage.settle()
    assert stage.events.types() == ["SETUP_ERROR", "LICENSE_ERROR", "LICENSE_ERROR"]
    errors = [stage.events.error(E.SETUP_ERROR), waiting.exception(10), later.exception(10)]
    assert [error.already_reported for error in errors if isinstance(error, usher.UsherError)] == [False, True, True]
    assert [error.operation for error in shown(stage, *errors[1:])] == [usher.Operation.SETUP]


def test_refusedHeartbeat_withALicenceAfterIt_isShownOnce(stage: Stage) -> None:
    """The head-end ends the session, and HEARTBEAT_ERROR reports this. The error of a later licence request says that
    the failure was already reported (errors.md: `already_reported`)."""
    playback = stage.play()
    stage.settle()
    stage.headend.faults.add("heartbeat", Fault.error(1011))
    stage.advance(60_000)
    answer = playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE).exception(10)
    stage.settle()
    assert [error.operation for error in shown(stage, answer)] == [usher.Operation.HEARTBEAT]


def test_refusedLicence_alone_isShown(stage: Stage) -> None:
    """The licence server refuses a licence; no event has reported this before, so the screen shows it."""
    stage.headend.faults.add("license", Fault.error(4005, status=403))
    playback = stage.play()
    answer = playback.request_license(usher.KeySystem.CLEARKEY, CHALLENGE).exception(10)
    stage.settle()
    assert isinstance(answer, usher.UsherError) and not answer.already_reported
    assert [error.operation for error in shown(stage)] == [usher.Operation.LICENSE]


def test_zap_withATeardownThatFails_stopsNothing(stage: Stage) -> None:
    """At a zap the head-end refuses the teardown of the old item. The TEARDOWN_ERROR of the old item comes after the
    new item has begun, and its must_stop is 0."""
    stage.headend.faults.add("teardown", Fault.error(4000, status=400))
    stage.play(tag="old")
    stage.settle()
    new = stage.play(tag="new")
    stage.settle()
    assert not stage.events.error(E.TEARDOWN_ERROR, "old").must_stop
    assert not any(event.must_stop for event in stage.events.all())
    new.close()
    stage.settle()
    stage.headend.advance(240_000)
