"""Header and URL injection: the library refuses CR, LF and NUL in options and in answers of the host and of servers."""

from __future__ import annotations

import contextlib
import ctypes
import html
import json
from collections.abc import Callable
from typing import Any

import pytest

import usher
from stage import CHALLENGE, Stage
from stage import v2 as v2_stage
from stage.fps import CDM
from stage.raw import RawServer, reply
from usher.testing.headend import Fault, KeySystem

CRLF = "a\r\nX-Injected: 1"
POISONS = pytest.mark.parametrize("poison", ["a\rb", "a\nb", CRLF, "a\0b"], ids=["CR", "LF", "CRLF", "NUL"])
ENDS = pytest.mark.parametrize(
    "poison", ["a\rX-Injected: 1", "a\nX-Injected: 1", CRLF, "a\0b"], ids=["CR", "LF", "CRLF", "NUL"]
)


def nothing_injected(stage: Stage) -> None:
    """Checks that the head-end received no injected header and no injected request."""
    for entry in stage.headend.journal:
        assert entry.header("x-injected") is None and entry.route != "unknown", stage.headend.journal.dump()


# ---- options of the host ---------------------------------------------------------------------------------------------


def url(stage: Stage, poison: str) -> str:
    return f"http://127.0.0.1:{stage.headend.port}/{poison}"


def multi(stage: Stage) -> usher.MultiInstanceDelegate:
    return usher.MultiInstanceDelegate(
        stage.context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url
    )


def loader(stage: Stage, **options: Any) -> usher.ResourceLoader:
    return usher.ResourceLoader(stage.context, CDM(), **options)


def v2(stage: Stage, **options: Any) -> usher.SSPV2Delegate:
    return usher.SSPV2Delegate(
        stage.context,
        **{"license_url": stage.headend.license_url("clearkey", api="v2"), "ssm_url": stage.headend.ssm_url, **options},
    )


DOORS: dict[str, Callable[[Stage, str], object]] = {
    "content token": lambda stage, poison: stage.play(poison),
    "late content token": lambda stage, poison: stage.player.play(None, delegate=stage.delegate()).set_content_token(
        poison
    ),
    "token of the map": lambda stage, poison: multi(stage).tokens.__setitem__("movie", poison),
    "header value": lambda stage, poison: stage.delegate().set_http_header("X-Value", poison),
    "header name": lambda stage, poison: stage.delegate().set_http_header(poison, "value"),
    "token header": lambda stage, poison: stage.delegate(token_header=poison),
    "token reply header": lambda stage, poison: v2(stage, token_reply_header=poison),
    "extra header of SSP": lambda stage, poison: stage.delegate(extra_headers=f"X-Value: {poison}"),
    "extra header name": lambda stage, poison: stage.delegate(extra_headers=f"{poison}: value"),
    "extra header of V2": lambda stage, poison: v2(stage, extra_headers=f"X-Value: {poison}"),
    "extra header of a loader": lambda stage, poison: loader(
        stage, license_url=stage.headend.fps_url, extra_headers=f"X: {poison}"
    ),
    "user agent": lambda stage, poison: usher.Context(user_agent=poison),
    "API version": lambda stage, poison: stage.delegate(ssm_api_version=poison),
    **{
        f"{name} of SSP": lambda stage, poison, name=name: stage.delegate(**{name: url(stage, poison)})  # type: ignore[misc]
        for name in (
            "license_url",
            "ssm_url",
            "certificate_url",
            "setup_url",
            "heartbeat_url",
            "teardown_url",
            "renewal_url",
        )
    },
    **{
        f"{name} of a loader": lambda stage, poison, name=name: loader(stage, **{name: url(stage, poison)})  # type: ignore[misc]
        for name in ("license_url", "entitlement_url", "certificate_url")
    },
}


@POISONS
@pytest.mark.parametrize("door", DOORS)
def test_option_withALineEnd_isRefused(stage: Stage, door: str, poison: str) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        DOORS[door](stage, poison)
    stage.settle()
    assert stage.routes() == []


FRAMING = [
    "Content-Length: 3",
    "transfer-encoding: chunked",
    "HOST: other.example",
    "Connection: close",
    "TE: trailers",
]


@pytest.mark.parametrize("line", FRAMING)
def test_headerThatFramesARequest_isRefused(stage: Stage, line: str) -> None:
    """The library refuses a header of the host that would change where a request ends or goes; it sends nothing."""
    name, _, value = line.partition(": ")
    for refused in (
        lambda: stage.delegate(extra_headers=f"X-One: 1\n{line}"),
        lambda: stage.delegate(token_header=name),
        lambda: loader(stage, license_url=stage.headend.fps_url, extra_headers=line),
        lambda: stage.delegate().set_http_header(name, value),
    ):
        with pytest.raises(usher.InvalidArgumentError):
            refused()
    assert stage.routes() == []


@pytest.mark.parametrize("poison", ["a\x01b", "a\x1b[31mb", "a\x7fb"], ids=["SOH", "ESC", "DEL"])
@pytest.mark.parametrize("door", [door for door in DOORS if "header" in door or "token" in door or "agent" in door])
def test_option_withAControlCharacter_isRefused(stage: Stage, door: str, poison: str) -> None:
    """The library refuses a token or header that contains a control character; it sends nothing."""
    with pytest.raises(usher.InvalidArgumentError):
        DOORS[door](stage, poison)
    stage.settle()
    assert stage.routes() == []


@pytest.mark.parametrize("blank", [" ", "\t", " \t "])
def test_contentToken_ofBlanks_isRefused(stage: Stage, blank: str) -> None:
    """The library refuses a content token that consists only of blanks, because libcurl would then send no token
    header; it sends nothing."""
    with pytest.raises(usher.InvalidArgumentError):
        stage.play(blank)
    assert stage.routes() == []


def test_extraHeaders_severalLines_areSeveralHeaders(stage: Stage) -> None:
    """``extra_headers`` accepts LF, because there it separates the header lines; each line becomes one header."""
    stage.play(delegate=stage.delegate(extra_headers="X-One: 1\nX-Two: 2")).wait_session()
    (setup,) = stage.sent("setup")
    assert (setup.header("x-one"), setup.header("x-two")) == ("1", "2")


# ---- answers of the host ---------------------------------------------------------------------------------------------


@ENDS
def test_answerOfTheTokenCallback_withALineEnd_isRefused(stage: Stage, lib: Any, poison: str) -> None:
    """The library refuses an answer with a token that a header cannot contain; the question stays open.

    The test calls the C function directly, because the Python bindings would refuse the token before.
    """
    given = poison.replace("\0", "\n").encode()  # in C a NUL ends the text
    asked: list[object] = []

    def ask(request: usher.TokenRequest) -> str:
        with pytest.raises(usher.InvalidArgumentError) as refused:
            lib.usher_complete_token(request._completion, given)
        asked.append(refused.value)
        return stage.headend.content_token()

    stage.player.play(None, delegate=stage.delegate(token_callback=ask)).wait_session()
    assert len(asked) == 1
    nothing_injected(stage)


@ENDS
@pytest.mark.parametrize("what", ["http_headers", "license_url"])
def test_answerOfAHook_withALineEnd_isRefused(stage: Stage, lib: Any, what: str, poison: str) -> None:
    """The library refuses a hook's answer with a line end that does not separate two headers."""
    asked: list[object] = []

    def answer(self: Any, call: usher.HookCall[Any]) -> Any:
        with pytest.raises(usher.InvalidArgumentError) as refused:
            if what == "license_url":
                given = url(stage, poison).encode()
                lib.usher_complete_hook(
                    call._completion, (ctypes.c_uint8 * len(given)).from_buffer_copy(given), len(given)
                )
            else:
                lib.usher_complete_headers(
                    call._completion,
                    f"X-Value: {poison}".replace("\nX-Injected: 1", "\nInjected").replace("\0", "\r").encode(),
                )
        asked.append(refused.value)
        return call.builtin()

    token = stage.headend.content_token(session_control=False)
    delegate = type("Own", (usher.CommonDelegate,), {what: answer})(
        stage.context, license_url=stage.headend.license_url("clearkey")
    )
    stage.play(token, delegate=delegate).get_license(usher.KeySystem.CLEARKEY, CHALLENGE)
    assert len(asked) == 1
    nothing_injected(stage)


# ---- what servers say ------------------------------------------------------------------------------------------------


@ENDS
def test_sessionToken_ofSetup_withALineEnd_isNotSentBack(stage: Stage, poison: str) -> None:
    stage.headend.faults.add("setup", Fault.fields(sessionToken=poison))
    stage.play(tag="a")
    stage.advance(130_000)
    assert stage.events.error(usher.EventType.SETUP_ERROR, "a").status is usher.Status.PROTOCOL
    assert stage.routes() == ["setup"]
    nothing_injected(stage)


@ENDS
def test_sessionToken_ofAHeartbeat_withALineEnd_isNotSentBack(stage_factory: Callable[..., Stage], poison: str) -> None:
    stage = stage_factory(headend={"token_rotation": "accept_previous"})
    stage.headend.faults.add("heartbeat", Fault.fields(sessionToken=poison))
    playback = stage.play()
    stage.advance(130_000)
    playback.close()
    stage.settle()
    assert stage.routes()[-1] == "teardown" and len(stage.sent("heartbeat")) >= 3
    nothing_injected(stage)


@ENDS
@pytest.mark.parametrize("place", ["field", "CustomData"])
def test_sessionToken_ofALicence_withALineEnd_isNotSentBack(stage: Stage, place: str, poison: str) -> None:
    """The library ignores the session token in a licence reply of SSP V2 when the token has a line end. (In PlayReady
    replies the token is in the XML.)"""
    key_system: KeySystem = "playready" if place == "CustomData" else "clearkey"
    if place == "field":
        stage.headend.faults.add("license", Fault.fields(sessionToken=poison))
    else:
        data = html.escape(json.dumps({"sessionToken": poison, "heartbeat": 60}))
        stage.headend.faults.add(
            "license", Fault.reply(200, body=f"<a><CustomData>{data}</CustomData></a>", content_type="text/xml")
        )
    playback = v2_stage.play(stage, key_system)
    with pytest.raises(usher.UsherError) as refused:
        v2_stage.licence(playback, key_system)
    assert refused.value.status is usher.Status.PROTOCOL
    stage.advance(130_000)
    assert stage.routes() == ["license"]
    nothing_injected(stage)


@pytest.mark.parametrize("end", [b"\r", b"\0", b"\n ", b"-"], ids=["CR", "NUL", "folded", "none"])
def test_sessionToken_ofAReplyHeader_withALineEnd_isNotSentBack(stage: Stage, end: bytes) -> None:
    """The library does not use a session token with a line end when the token comes in a reply header; it sends no
    request with this token.

    libcurl itself keeps a single CR in the value of a header, and reads a folded line as one line.
    """
    licence = json.dumps(
        {"keys": [{"kty": "oct", "kid": "ABEiM0RVZneImaq7zN3u_w", "k": "_-7dzLuqmYh3ZlVEMyIRAA"}]}
    ).encode()
    with RawServer(reply(licence, b"X-Session-Token: a" + end + b"X-Injected: 1"), reply(b"{}")) as server:
        playback = v2_stage.play(
            stage, license_url=server.url, ssm_url=server.url, token_reply_header="x-session-token"
        )
        with contextlib.suppress(usher.UsherError):
            v2_stage.licence(playback)
        stage.advance(130_000)
        playback.close(usher.CloseMode.TEARDOWN)
        stage.settle()
        assert any(b"a-X-Injected" in request for request in server.requests[1:]) == (end == b"-")
        for request in server.requests:
            assert not [
                line for line in request.replace(b"\r", b"\n").split(b"\n") if line.lower().startswith(b"x-injected")
            ], request
