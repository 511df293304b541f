"""A host makes mistakes: it passes wrong handles, sizes and tokens, its callbacks raise exceptions, and it frees
objects in any order."""

from __future__ import annotations

import ctypes
import gc
import threading
from ctypes import byref, sizeof
from typing import Any

import pytest

import usher
from stage import KID, Stage, StageFactory
from usher._c import abi
from usher.testing.headend import Fault

E = usher.EventType


def status(function: Any, *arguments: Any) -> usher.Status:
    """Calls the function. Returns its status, or the status of the error that it raises."""
    try:
        return usher.Status(function(*arguments))
    except usher.UsherError as error:
        return error.status


def functions_of(lib: Any, kind: type[ctypes.c_void_p]) -> list[Any]:
    return [getattr(lib, name) for name, (_, arguments) in abi.PROTOTYPES.items() if arguments and arguments[0] is kind]


def dummies(lib: Any, name: str, options: Any) -> list[Any]:
    """Returns valid arguments for all parameters after the handle, so that only the handle is wrong."""
    values: list[Any] = []
    for kind in abi.PROTOTYPES[name][1][1:]:
        if kind in abi.CALLBACKS.values():
            values.append(kind())
        elif hasattr(kind, "contents") or (isinstance(kind, type) and issubclass(kind, ctypes._Pointer)):
            value = kind._type_()
            if isinstance(value, ctypes.Structure) and "struct_size" in dict(value._fields_):  # type: ignore[call-overload]
                value.struct_size = sizeof(value)
            values.append(byref(value))
        else:
            values.append(kind())
    return values


HANDLES = [abi.ContextHandle, abi.DelegateHandle, abi.PlayerHandle, abi.PlaybackHandle, abi.ResponseHandle]
BY_HANDLE = [name for name, (_, arguments) in abi.PROTOTYPES.items() if arguments and arguments[0] in HANDLES]


@pytest.mark.sweep
@pytest.mark.parametrize("name", BY_HANDLE)
@pytest.mark.parametrize("value", [1, 0xDEADBEEF, 2**64 - 1, 2**63])
def test_function_withAForeignHandle_answersInvalidHandle(lib: Any, name: str, value: int) -> None:
    kind = abi.PROTOTYPES[name][1][0]
    assert status(getattr(lib, name), kind(value), *dummies(lib, name, None)) is usher.Status.INVALID_HANDLE


@pytest.mark.sweep
@pytest.mark.parametrize("name", BY_HANDLE)
def test_function_withNull_isNoCrash(lib: Any, name: str) -> None:
    found = status(getattr(lib, name), abi.PROTOTYPES[name][1][0](), *dummies(lib, name, None))
    assert found is (usher.Status.OK if name.endswith("_free") else usher.Status.INVALID_HANDLE)


@pytest.mark.sweep
@pytest.mark.parametrize("name", BY_HANDLE)
def test_function_withAHandleOfAnotherKind_answersInvalidHandle(stage: Stage, lib: Any, name: str) -> None:
    kind = abi.PROTOTYPES[name][1][0]
    other = stage.context._handle if kind is not abi.ContextHandle else stage.player._handle
    assert status(getattr(lib, name), kind(other.value), *dummies(lib, name, None)) is usher.Status.INVALID_HANDLE


def test_handles_freedTwice_answerInvalidHandle(stage: Stage, lib: Any) -> None:
    delegate, player = stage.delegate(), usher.Player(stage.context)
    playback = player.play(stage.headend.content_token(), delegate=delegate)
    stage.settle()
    for thing, free in (
        (playback, lib.usher_playback_free),
        (player, lib.usher_player_free),
        (delegate, lib.usher_delegate_free),
    ):
        assert status(free, thing._handle) is usher.Status.OK
        assert status(free, thing._handle) is usher.Status.INVALID_HANDLE
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


def test_handles_afterTheirContext_areInvalid(stage_factory: StageFactory, lib: Any) -> None:
    stage = stage_factory()
    playback = stage.play()
    stage.settle()
    stage.context.close()
    assert status(lib.usher_playback_close, playback._handle, 0) is usher.Status.INVALID_HANDLE
    assert status(lib.usher_player_stop, stage.player._handle, 0) is usher.Status.INVALID_HANDLE
    assert status(lib.usher_context_free, stage.context._handle) is usher.Status.INVALID_HANDLE
    playback.close()
    playback.free()
    stage.player.close()
    stage.context.close()
    with pytest.raises(usher.InvalidHandleError):
        playback.wait_session()


OPTIONS = {
    "usher_context_new": (abi.ContextOptions, abi.ContextHandle),
    "usher_ssp_delegate_new": (abi.SSPOptions, abi.DelegateHandle),
    "usher_player_play": (abi.PlaybackOptions, abi.PlaybackHandle),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("size", [0, 1, 8, 15, 2**32, 2**63])
def test_options_ofASizeThatFitsNoRelease_areRefused(stage: Stage, lib: Any, name: str, size: int) -> None:
    structure, handle = OPTIONS[name]
    options, out = structure(struct_size=size), handle(77)
    subject = {"usher_ssp_delegate_new": [stage.context._handle], "usher_player_play": [stage.player._handle]}.get(
        name, []
    )
    assert status(getattr(lib, name), *subject, byref(options), byref(out)) is usher.Status.INVALID_ARGUMENT
    assert not out.value


@pytest.mark.parametrize(
    ("tail", "wanted"), [(b"\0" * 16, usher.Status.OK), (b"\0" * 15 + b"\1", usher.Status.INVALID_ARGUMENT)]
)
def test_options_ofALaterRelease_areTakenWhileTheirNewFieldsAreZero(
    stage: Stage, lib: Any, tail: bytes, wanted: usher.Status
) -> None:
    size = sizeof(abi.SSPOptions)
    url = ctypes.c_char_p(stage.headend.license_url("clearkey").encode())
    options = abi.SSPOptions(struct_size=size + 16, license_url=url)
    buffer = ctypes.create_string_buffer(ctypes.string_at(byref(options), size) + tail, size + 16)
    out = abi.DelegateHandle()
    pointer = ctypes.cast(buffer, ctypes.POINTER(abi.SSPOptions))
    assert status(lib.usher_ssp_delegate_new, stage.context._handle, pointer, byref(out)) is wanted
    if out.value:
        lib.usher_delegate_free(out)


@pytest.mark.parametrize(
    "token",
    ["", "a\rb", "a\nb", "a\r\nX: y", "a\0b", "x" * 65_537],
    ids=["empty", "CR", "LF", "CRLF", "NUL", "64 kB + 1"],
)
def test_play_withATokenThatIsNone_isRefused(stage: Stage, token: str) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        stage.play(token)
    stage.settle()
    assert stage.routes() == []


@pytest.mark.parametrize(
    "options",
    [
        {"license_url": ""},
        {"license_url": "not a url"},
        {"license_url": "ftp://127.0.0.1/x"},
        {"license_url": "//127.0.0.1/x"},
        {"license_url": "http://tenant.example.invalid/x"},
        {"ssm_url": "127.0.0.1/ssm"},
        {"ssm_url": "tenant.example.invalid"},
        {"ssm_url": "file:///etc/passwd"},
        {"ssm_url": "http://127.0.0.1/a b"},
        {"ssm_url": "http://127.0.0.1/\r\nX: y"},
        {"ssm_url": "http://127.0.0.1/" + "x" * 9_000},
        {"token_header": "a b"},
        {"token_header": "a:"},
        {"token_header": "a\nb"},
        {"extra_headers": "no colon"},
        {"extra_headers": "a: b\r\nc: d"},
        {"setup_body": "[]"},
        {"setup_body": "not json"},
        {"jitter_permille": 501},
        {"keep_alive": 9},
        {"wire_format": -1},
        {"ssm_append_version": 3},
        {"period_min_ms": 1000, "period_max_ms": 10},
    ],
    ids=str,
)
def test_delegate_withABadOption_isRefused(stage: Stage, options: dict[str, Any]) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        stage.delegate(**options)


@pytest.mark.parametrize(
    ("key_system", "payload"),
    [
        ("", b"x"),
        ("nonsense", b"x"),
        (usher.KeySystem.CLEARKEY, b""),
        (usher.KeySystem.CLEARKEY, bytes(1024 * 1024 + 1)),
    ],
    ids=["no key system", "unknown key system", "empty payload", "payload too large"],
)
def test_licenseRequest_withABadField_isRefused(stage: Stage, key_system: str, payload: bytes) -> None:
    playback = stage.play()
    stage.settle()
    with pytest.raises(usher.InvalidArgumentError):
        playback.request_license(key_system, payload)
    with pytest.raises(usher.InvalidArgumentError):
        playback.get_license(key_system, payload)


def test_numbersThatDoNotFit_areRefused(stage: Stage) -> None:
    playback = stage.play()
    stage.settle()
    for call in (
        lambda: playback.wait_session(-1),
        lambda: playback.wait_closed(2**32),
        lambda: stage.context.jump(-1),
        lambda: stage.delegate(period_max_ms=2**40),
    ):
        with pytest.raises(usher.InvalidArgumentError):
            call()


def test_play_withoutADelegate_isRefused(stage: Stage) -> None:
    with pytest.raises(usher.NoDelegateError):
        stage.player.play("token")
    stage.context.set_delegate(stage.delegate())
    stage.player.play(stage.headend.content_token())
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED"]


def test_delegate_ofAnotherContext_isRefused(stage_factory: StageFactory) -> None:
    one, other = stage_factory(), stage_factory()
    foreign = other.delegate()
    with pytest.raises(usher.UsherError) as caught:
        one.play(delegate=foreign)
    assert isinstance(caught.value, (usher.InvalidArgumentError, usher.InvalidHandleError))
    with pytest.raises(usher.InvalidArgumentError):
        one.context.set_delegate(foreign)


def test_advance_onTheSystemClock_isAStateError(stage_factory: StageFactory) -> None:
    stage = stage_factory(clock="system")
    for call in (stage.context.advance, stage.context.jump):
        with pytest.raises(usher.StateError):
            call(1)
    stage.context.settle()


def test_completions_thatNeverWere_areInvalid(lib: Any) -> None:
    for number in (0, 1, 2**64 - 1):
        assert status(lib.usher_complete_token, number, b"token") is usher.Status.INVALID_COMPLETION
        assert status(lib.usher_complete_token, number, None) is usher.Status.INVALID_COMPLETION
        assert status(lib.usher_complete_payload, number, None, 0) is usher.Status.INVALID_COMPLETION


def test_explain_ofAnything_hasWords(lib: Any) -> None:
    for origin in [*usher.Origin]:
        for code in (0, 1007, -1, 2**63 - 1, -(2**63)):
            words = usher.explain(code, origin, status=usher.Status.REFUSED)
            assert words.summary and words.advice
    assert usher.explain(1007, usher.Origin.SSM, status=usher.Status.LIMIT) != usher.explain(
        1007, usher.Origin.LICENSE, status=usher.Status.REFUSED
    )


def test_names_ofEveryNumber_areTheHeaders(lib: Any) -> None:
    for status_ in usher.Status:
        name = "USHER_OK" if status_ is usher.Status.OK else f"USHER_E_{status_.name}"
        assert lib.usher_status_name(status_).decode() == name
        assert lib.usher_status_message(status_)
    for event in usher.EventType:
        assert lib.usher_event_name(event).decode() == event.name
    origins = [lib.usher_origin_name(origin) for origin in usher.Origin]
    operations = [lib.usher_operation_name(operation) for operation in usher.Operation]
    assert origins[:2] == [b"the library", b"session manager"] and operations[:2] == [b"none", b"set-up"]
    assert len(set(origins)) == len(origins) and len(set(operations)) == len(operations)
    assert lib.usher_origin_name(12345) == lib.usher_operation_name(-1) == b"unknown"
    assert lib.usher_status_name(12345) == b"USHER_E_UNKNOWN"
    assert lib.usher_event_name(12345) == b"UNKNOWN"


# ---- closing and freeing ---------------------------------------------------------------------------------------------


def test_playback_freedWithoutClose_isTornDown(stage: Stage) -> None:
    playback = stage.play()
    stage.settle()
    playback.free()
    playback.free()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


def test_playback_leftByWith_isTornDown(stage: Stage) -> None:
    with stage.play():
        stage.settle()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


def test_objects_dropped_areFreed(stage: Stage) -> None:
    player = usher.Player(stage.context)
    playback = player.play(stage.headend.content_token(), delegate=stage.delegate())
    stage.settle()
    stage.events.clear()
    del player, playback
    gc.collect()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


def test_player_stopped_tearsDownAndCanPlayAgain(stage: Stage) -> None:
    stage.play()
    stage.settle()
    stage.player.stop()
    stage.player.stop()
    stage.settle()
    stage.play()
    stage.settle()
    assert stage.routes() == ["setup", "teardown", "setup"]


def test_delegate_freedWhileUsed_goesOn(stage: Stage) -> None:
    delegate = stage.delegate()
    playback = stage.play(delegate=delegate)
    delegate.close()
    delegate.close()
    stage.settle()
    assert stage.clear_keys(playback)


def test_context_closedInsideACallback_endsInTheBackground(stage_factory: StageFactory) -> None:
    stage = stage_factory()
    done = threading.Event()

    def observer(event: usher.Event) -> None:
        if event.type is E.SESSION_STARTED:
            stage.context.close()
            done.set()

    stage.context.add_observer(observer)
    stage.play()
    assert done.wait(5)
    stage.headend.journal.wait_for(1, route="teardown", answered=True)


def test_observer_removed_isToldNothingMore(stage: Stage) -> None:
    told: list[usher.Event] = []
    with stage.context.add_observer(told.append):
        stage.play()
        stage.settle()
    count = len(told)
    assert count == 1
    stage.advance(60_000)
    assert len(told) == count


# ---- callbacks that raise --------------------------------------------------------------------------------------------


@pytest.mark.callback_errors
def test_tokenCallback_thatRaises_isNoTokenAndReported(stage: Stage) -> None:
    def broken(request: usher.TokenRequest) -> str:
        raise ZeroDivisionError("mine")

    stage.player.play(delegate=stage.delegate(token_callback=broken))
    stage.settle()
    assert isinstance(stage.events.error(E.SETUP_ERROR), usher.NoTokenError)
    assert [(name, type(error)) for name, error in stage.callback_failures] == [("token", ZeroDivisionError)]
    assert isinstance(stage.context.last_callback_error, ZeroDivisionError)


@pytest.mark.callback_errors
@pytest.mark.parametrize("answer", ["", "a\nb", "a\0b", 7])
def test_tokenCallback_thatReturnsNoToken_isNoTokenAndReported(stage: Stage, answer: Any) -> None:
    stage.player.play(delegate=stage.delegate(token_callback=lambda request: answer))
    stage.settle()
    assert isinstance(stage.events.error(E.SETUP_ERROR), usher.NoTokenError)
    assert [name for name, _ in stage.callback_failures] == ["token"]


@pytest.mark.callback_errors
@pytest.mark.breaks_rules("late-beat")
def test_payloadCallback_thatRaises_isACallbackErrorAndReported(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"clearkey"}})

    def broken(request: usher.PayloadRequest) -> bytes:
        raise ZeroDivisionError("mine")

    playback = stage.play(payload=broken)
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(60_000)
    assert stage.callback_failures[0][0] == "payload"
    assert not stage.events.all(E.HEARTBEAT_ERROR), "the library first retries within the lease"
    stage.advance(65_000)
    assert len(stage.callback_failures) > 2
    assert isinstance(stage.events.error(E.HEARTBEAT_ERROR), usher.CallbackError)


@pytest.mark.callback_errors
def test_observer_thatRaises_isReportedAndOthersAreTold(stage: Stage) -> None:
    def broken(event: usher.Event) -> None:
        raise ZeroDivisionError("mine")

    stage.context.add_observer(broken)
    told: list[usher.Event] = []
    stage.context.add_observer(told.append)
    stage.play()
    stage.advance(60_000)
    assert [event.type for event in told] == [E.SESSION_STARTED, E.KEPT_ALIVE]
    assert [name for name, _ in stage.callback_failures] == ["observer", "observer"]


@pytest.mark.callback_errors
def test_licenseCallback_thatRaises_isReportedAndTheFutureHasTheLicense(stage: Stage) -> None:
    def broken(future: Any) -> None:
        raise ZeroDivisionError("mine")

    playback = stage.play()
    stage.settle()
    future = playback.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]), callback=broken)
    assert KID in future.result(5).clear_keys()
    stage.settle()
    assert [name for name, _ in stage.callback_failures] == ["license"]


def test_slowCallback_elsewhere_delaysNoBeat(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 4})
    gate = threading.Event()
    slow = stage.play(tag="slow", player=usher.Player(stage.context))
    stage.play(tag="other")
    stage.settle()
    stage.context.add_observer(lambda event: gate.wait(30) and None if event.tag == "slow" else None)
    stage.held_callbacks = 3
    stage.advance(120_000)
    assert stage.headend.journal.count("heartbeat") == 4
    gate.set()
    stage.held_callbacks = 0
    stage.settle()
    slow.close()
    stage.settle()


def test_secrets_areInNoLogAndNoEvent(stage: Stage) -> None:
    token = stage.headend.content_token()
    stage.headend.faults.add("setup", Fault.none(), Fault.error(1003, message=f"bad token {token}"))
    playback = stage.play(token)
    stage.settle()
    stage.clear_keys(playback)
    stage.play(token)
    stage.settle()
    told = repr(stage.events.all()) + "\n".join(stage.logs) + stage.events.error(E.SETUP_ERROR).message
    assert token not in told and token[:40] not in told
