"""The library refuses calls; the exception and the log name the argument and the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import usher
from stage import Stage
from usher._c.ffi import explained_error
from usher.testing.headend import Fault

TOKEN = "not-in-any-log"


def ssp(stage: Stage, **options: Any) -> usher.SSPDelegate:
    return usher.SSPDelegate(stage.context, **{"license_url": "https://license.example/", **options})


REFUSALS: list[tuple[Callable[[Stage], object], str]] = [
    (lambda stage: ssp(stage, license_url="foo"), "license_url: not an absolute http or https URL"),
    (
        lambda stage: ssp(stage, license_url="http://license.example/"),
        "license_url: plain http to another machine needs allow_insecure_http",
    ),
    (lambda stage: ssp(stage, certificate_url="ftp://a/"), "certificate_url: not an absolute http or https URL"),
    (lambda stage: ssp(stage, setup_url="https://ssm.example/"), "ssm_url: set-up, heartbeat and teardown need URLs"),
    (lambda stage: ssp(stage, setup_body="[]"), "setup_body: not a JSON object"),
    (lambda stage: ssp(stage, token_header="a b"), "token_header: not a header name"),
    (lambda stage: ssp(stage, period_min_ms=20, period_max_ms=10), "period_min_ms: greater than period_max_ms"),
    (
        lambda stage: ssp(stage).set_http_header("Host", "x"),
        "name: not a header name, or a header that the library sets",
    ),
    (lambda stage: stage.play(""), "content_token: empty"),
    (lambda stage: stage.play(TOKEN + "\r\n"), "content_token: empty, blank, or has a character that no header"),
]


MENDED = {
    "license_url: plain http to another machine needs allow_insecure_http": "license_url: plain http to "
    "license.example needs Context(allow_insecure_http=True); without TLS everybody on the way can read the tokens",
    "period_min_ms: greater than period_max_ms": "period_min_ms: 20: greater than period_max_ms",
}
"""Maps a line of the log to the text of the exception, for the calls whose exception says more than the log."""


@pytest.mark.parametrize(("call", "words"), REFUSALS, ids=[words for _, words in REFUSALS])
def test_argument_refused_isNamedInTheExceptionAndInTheLog(
    stage: Stage, call: Callable[[Stage], object], words: str
) -> None:
    """The host passes a malformed argument; the exception and one line of the log name the argument and the reason, and
    do not repeat its value."""
    with pytest.raises(usher.InvalidArgumentError) as caught:
        call(stage)
    assert MENDED.get(words, words) in str(caught.value)
    stage.settle()
    lines = [line for line in stage.logs if line.startswith("USHER_E_INVALID_ARGUMENT: ")]
    assert len(lines) == 1
    assert words in lines[0]
    assert TOKEN not in str(caught.value) + lines[0]


def test_stateThatAllowsNoCall_isNamedInTheException(stage: Stage) -> None:
    """The host calls functions that the state of an object does not allow; each exception says which object and why."""
    with pytest.raises(usher.StateError, match="context: is not pumped"):
        stage.context.pump()
    playback = stage.play()
    with pytest.raises(usher.StateError, match="delegate: has no certificate"):
        playback.get_certificate()
    with pytest.raises(usher.StateError, match="playback: needs no content token now"):
        playback.set_content_token("another")


def test_requestThatFails_isNoRefusal(stage: Stage) -> None:
    """The licence server refuses the request of a call that waits. The exception has the server's error, and the
    library logs no refusal of its own. The next error on this thread does not repeat the text of the server."""
    playback = stage.play()
    stage.headend.faults.add("license", Fault.error(1003))
    with pytest.raises(usher.RefusedError) as caught:
        playback.get_license(usher.KeySystem.WIDEVINE, b"challenge")
    assert caught.value.service_code == 1003
    stage.settle()
    assert not [line for line in stage.logs if line.startswith("USHER_E_")]


def test_contextRefused_forAFileThatIsMissing_namesTheOption(lib: Any) -> None:
    """The library cannot read the file of `ca_file`, and so makes no context; the exception and the log name the
    option."""
    lines: list[str] = []
    with pytest.raises(
        usher.InvalidArgumentError,
        match=r"ca_file: '/nonexistent/ca.pem': not a file that can be read \(no such file or directory\)",
    ):
        usher.Context(ca_file="/nonexistent/ca.pem", log=lambda level, line: lines.append(line))
    assert lines == ["ca_file: not a file that can be read"]


def test_argument_refusedOfAFunctionWithoutContext_hasTheGeneralText(lib: Any) -> None:
    """The error of a function without a context has a general text, not the text of an earlier refusal by another
    function."""
    with pytest.raises(usher.InvalidArgumentError):
        usher.Context(ca_file="/nonexistent/ca.pem")
    with pytest.raises(usher.InvalidArgumentError, match="an argument is missing, malformed or out of range"):
        explained_error(usher.Origin(99), usher.Status.OK, 0)
