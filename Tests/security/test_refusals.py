"""The library uses plain http to other machines only if the host allows this. It refuses data that are too large or
nested too deep."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import usher
from stage import CHALLENGE, Stage
from stage import v2 as v2_stage
from stage.fps import CDM
from stage.raw import RawServer, endless, reply
from usher.testing.headend import Fault

CLEARKEY = usher.KeySystem.CLEARKEY

# ---- plain http ------------------------------------------------------------------------------------------------------

ELSEWHERE = [
    "http://tenant.example.invalid/x",
    "http://192.0.2.1/x",
    "http://10.0.0.1/x",
    "http://[2001:db8::1]/x",
    "http://0.0.0.0/x",
    "http://128.0.0.1/x",
    "http://127.0.0.1.example.invalid/x",
    "http://localhost.example.invalid/x",
    "http://127.0.0.1@tenant.example.invalid/x",
    "http://localhost:80@tenant.example.invalid/x",
    "http://tenant.example.invalid#@127.0.0.1/x",
    "http://[::1].example.invalid/x",
    "HTTP://tenant.example.invalid/x",
]
OPTIONS: dict[str, Callable[[usher.Context, str], object]] = {
    "licence server": lambda context, url: usher.SSPDelegate(context, license_url=url),
    "session manager": lambda context, url: usher.SSPDelegate(
        context, license_url="https://tenant.example.invalid/", ssm_url=url
    ),
    **{
        name: lambda context, url, name=name: usher.SSPDelegate(  # type: ignore[misc]
            context,
            license_url="https://tenant.example.invalid/",
            ssm_url="https://tenant.example.invalid/",
            **{name: url},
        )
        for name in ("certificate_url", "setup_url", "heartbeat_url", "teardown_url", "renewal_url")
    },
    "V2": lambda context, url: usher.SSPV2Delegate(context, license_url=url, ssm_url="https://tenant.example.invalid/"),
    "default": lambda context, url: usher.DefaultDelegate(context, license_url=url),
    "common": lambda context, url: usher.CommonDelegate(context, license_url=url),
    "multi-instance": lambda context, url: usher.MultiInstanceDelegate(context, license_url=url),
    "key server": lambda context, url: usher.ResourceLoader(context, CDM(), license_url=url),
    "entitlement server": lambda context, url: usher.ResourceLoader(
        context, CDM(), route=usher.Route.ENTITLEMENT, entitlement_url=url
    ),
    "loader's certificate": lambda context, url: usher.ResourceLoader(
        context, CDM(), license_url="https://tenant.example.invalid/", certificate_url=url
    ),
}


@pytest.mark.parametrize("url", ELSEWHERE)
@pytest.mark.parametrize("option", OPTIONS)
def test_plainHttp_offThisMachine_isRefused(lib: Any, option: str, url: str) -> None:
    with usher.Context() as context, pytest.raises(usher.InvalidArgumentError):
        OPTIONS[option](context, url)


@pytest.mark.parametrize("option", OPTIONS)
def test_plainHttp_offThisMachine_isTakenWhereTheHostSaysSo(lib: Any, option: str) -> None:
    with usher.Context(allow_insecure_http=True) as context:
        OPTIONS[option](context, "http://tenant.example.invalid/x")


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://127.255.0.9:8080/x", "http://localhost/", "http://LOCALHOST:1/", "http://[::1]:8/x"],
)
@pytest.mark.parametrize("option", OPTIONS)
def test_plainHttp_onLoopback_isTaken(lib: Any, option: str, url: str) -> None:
    with usher.Context() as context:
        OPTIONS[option](context, url)


@pytest.mark.parametrize("url", ["https://user:pass@h.example.invalid/", "https://user@h.example.invalid/"])
@pytest.mark.parametrize("option", OPTIONS)
def test_url_withUserOrPassword_isRefused(lib: Any, option: str, url: str) -> None:
    """The host gives a URL with credentials; the library refuses it."""
    with usher.Context() as context, pytest.raises(usher.InvalidArgumentError):
        OPTIONS[option](context, url)


def test_plainHttp_ofTheUrlHook_isRefused(stage: Stage) -> None:
    class Own(usher.CommonDelegate):
        def license_url(self, call: usher.HookCall[str]) -> str:
            return "http://tenant.example.invalid/x"

    playback = stage.play(delegate=Own(stage.context, license_url=stage.headend.license_url("clearkey")))
    with pytest.raises(usher.CallbackError):
        playback.get_license(CLEARKEY, CHALLENGE)
    assert stage.routes() == []


# ---- too large -------------------------------------------------------------------------------------------------------

MOST_TEXT = 65_536


@pytest.mark.parametrize("extra", [0, 1])
def test_contentToken_of64kB_isTaken_oneMoreIsRefused(stage: Stage, extra: int) -> None:
    with RawServer(reply(b'{"sessionToken":"t","heartbeat":60}'), reply(b"{}")) as server:
        delegate = stage.delegate(ssm_url=server.url)
        token = "t" * (MOST_TEXT + extra)
        if extra:
            with pytest.raises(usher.InvalidArgumentError):
                stage.player.play(token, delegate=delegate)
            return
        stage.player.play(token, delegate=delegate).wait_session()
        assert token.encode() in server.requests[0]


@pytest.mark.parametrize("place", ["setup", "heartbeat", "license"])
@pytest.mark.parametrize("extra", [0, 1])
def test_sessionToken_of64kB_isTaken_oneMoreIsNotSentBack(stage: Stage, place: str, extra: int) -> None:
    token = "t" * (MOST_TEXT + extra)
    answer = reply(
        json.dumps({"sessionToken": token, "heartbeat": 60, "keys": [{"kty": "oct", "kid": "A", "k": "A"}]}).encode()
    )
    first = reply(b'{"sessionToken":"first","heartbeat":60}')
    with RawServer(*([first] if place == "heartbeat" else []), answer, reply(b"{}")) as server:
        if place == "license":
            playback = v2_stage.play(stage, license_url=server.url, ssm_url=server.url)
            if extra:
                with pytest.raises(usher.UsherError) as refused:
                    v2_stage.licence(playback)
                assert refused.value.status is usher.Status.PROTOCOL
            else:
                v2_stage.licence(playback)
        else:
            playback = stage.play(delegate=stage.delegate(ssm_url=server.url))
        stage.advance(130_000)
        playback.close(usher.CloseMode.TEARDOWN)
        stage.settle()
        assert any(token.encode() in request for request in server.requests) == (not extra)


@pytest.mark.parametrize("extra", [0, 1])
def test_url_ofEightKilobytes_isTaken_oneMoreIsRefused(stage: Stage, extra: int) -> None:
    start = stage.headend.license_url("clearkey") + "?x="
    url = start + "x" * (8192 - len("&renew=true") - len(start) + extra)
    if extra:
        with pytest.raises(usher.InvalidArgumentError):
            stage.delegate(license_url=url)
        return
    assert stage.clear_keys(stage.play(delegate=stage.delegate(license_url=url)))


@pytest.mark.parametrize("extra", [0, 1])
def test_headerLines_of64kB_areTaken_oneMoreIsRefused(stage: Stage, extra: int) -> None:
    lines = "X-Long: " + "x" * (MOST_TEXT - len("X-Long: ") + extra)
    if extra:
        with pytest.raises(usher.InvalidArgumentError):
            stage.delegate(extra_headers=lines)
        return
    with RawServer(reply(b'{"sessionToken":"t","heartbeat":60}'), reply(b"{}")) as server:
        stage.play(delegate=stage.delegate(ssm_url=server.url, extra_headers=lines)).wait_session()
        assert lines.encode() in server.requests[0]


@pytest.mark.parametrize("extra", [0, 1])
def test_assetId_of64kB_isTaken_oneMoreIsRefused(stage: Stage, extra: int) -> None:
    playback = stage.play()
    asset_id = b"a" * (MOST_TEXT + extra)
    if extra:
        with pytest.raises(usher.InvalidArgumentError):
            playback.get_license(CLEARKEY, CHALLENGE, asset_id=asset_id)
    else:
        assert playback.get_license(CLEARKEY, CHALLENGE, asset_id=asset_id).clear_keys()


@pytest.mark.parametrize("extra", [0, 1])
def test_replyBody_ofTheMost_isTaken_oneByteMoreIsTooLarge(stage_factory: Callable[..., Stage], extra: int) -> None:
    stage = stage_factory(max_response_bytes=20_000)
    body = json.dumps(
        {"keys": [{"kty": "oct", "kid": "ABEiM0RVZneImaq7zN3u_w", "k": "_-7dzLuqmYh3ZlVEMyIRAA"}], "more": ""}
    )
    body = body[:-2] + "x" * (20_000 + extra - len(body)) + body[-2:]
    stage.headend.faults.add("license", Fault.reply(200, body=body, content_type="application/json"))
    playback = stage.play()
    if extra:
        with pytest.raises(usher.TooLargeError):
            playback.get_license(CLEARKEY, CHALLENGE)
    else:
        assert len(playback.get_license(CLEARKEY, CHALLENGE).data) == 20_000


def test_replyBody_compressed_isLimitedAfterDecoding(stage: Stage) -> None:
    """A server sends 100 kB of gzip that decode to 100 MB. The library stops reading at max_response_bytes and reports
    TOO_LARGE."""
    bomb = gzip.compress(bytes(100_000_000), 9)
    stage.headend.faults.add("license", Fault.reply(200, body=bomb, headers={"Content-Encoding": "gzip"}))
    with pytest.raises(usher.TooLargeError):
        stage.play().get_license(CLEARKEY, CHALLENGE)


@pytest.mark.parametrize(
    "lines",
    [
        (b"Content-Encoding: gzip, gzip",),
        (b"content-encoding: gzip", b"Content-Encoding: Deflate"),
        (b"Content-Encoding: br",),
        (b"Content-Encoding: zstd",),
        (b"Transfer-Encoding: gzip, chunked",),
        (b"transfer-encoding:\tgzip",),
    ],
    ids=lambda lines: b" ".join(lines).decode(),
)
def test_replyBody_inACodingNotAskedFor_isNotDecoded(stage: Stage, lines: tuple[bytes, ...]) -> None:
    """The library refuses a reply with several codings, because a few kilobytes of it could keep libcurl busy for
    minutes."""
    bomb = gzip.compress(gzip.compress(bytes(10_000_000), 9), 9)
    with RawServer(reply(bomb, *lines)) as server:
        delegate = usher.SSPDelegate(stage.context, license_url=server.url)
        with pytest.raises(usher.ProtocolError, match="Content-Encoding"):
            stage.play(delegate=delegate).get_license(CLEARKEY, CHALLENGE)


@pytest.mark.parametrize("word", ["utf-8", "x-unknown"])
@pytest.mark.parametrize("route", ["setup", "license", "certificate"])
def test_replyBody_withAWordThatIsNoCoding_saysWhichCodingsAreRead(stage: Stage, route: str, word: str) -> None:
    """A server writes a word that is no coding into Content-Encoding; the request fails, and the message lists the
    codings that the library reads."""

    stage.headend.faults.add(route, Fault.reply(200, body=b"a body", headers={"Content-Encoding": word}))
    delegate = stage.delegate(certificate_url=stage.headend.fps_certificate_url)
    playback = stage.play(delegate=delegate)
    with pytest.raises(usher.ProtocolError, match="Content-Encoding must be gzip, deflate or identity"):
        if route == "certificate":
            playback.get_certificate()
        else:
            playback.get_license(CLEARKEY, CHALLENGE)


@pytest.mark.parametrize("kind", ["headers", "one header", "interim replies"])
def test_replyHeaders_withoutEnd_areTooLarge_longBeforeMemoryIs(stage: Stage, kind: str) -> None:
    """A server sends header lines without end; the library stops reading, and reports TOO_LARGE."""
    pieces = {
        "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"x" * 1012 + b"\r\n"),
        "one header": (b"HTTP/1.1 200 OK\r\nX-Filler: ", b"x" * 1024),
        "interim replies": (b"", b"HTTP/1.1 102 Processing\r\nX-Filler: " + b"x" * 985 + b"\r\n\r\n"),
    }
    before = resident()
    with RawServer(endless(*pieces[kind], 200_000_000)) as server:
        stage.play(delegate=stage.delegate(ssm_url=server.url), tag="a")
        stage.settle()
        assert stage.events.error(usher.EventType.SETUP_ERROR, "a").status is usher.Status.TOO_LARGE
    assert server.sent < 16_000_000
    assert resident() - before < 16_000_000


def resident() -> int:
    """Returns the resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def peak() -> int:
    """Returns the largest resident memory of this process since the last call, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024


@pytest.mark.parametrize(("size", "most"), [(4096, 1_300_000), (1_000_000, 4_065_536)], ids=["4 KiB", "1 MB"])
@pytest.mark.parametrize("unit", ["1,", "null,", "1.5,", '"",', "[],", "{},", '{"a":1},', '"a",'])
def test_json_ofManyValues_takesLittleMemory(stage: Stage, unit: str, size: int, most: int) -> None:
    """A server replies with a JSON text of many small values. With a text of 1 MB the memory of the process grows by at
    most four times the size of the text plus 64 KiB; with a text of 4 KiB it grows by at most 1.3 MB."""
    text = '{"sessionToken":"t","heartbeat":60,"more":[' + (unit * ((size - 45) // len(unit)))[:-1] + "]}"
    assert size - 16 < len(text) <= size
    first = reply(b'{"sessionToken":"t","heartbeat":60}')
    with RawServer(first, reply(text.encode()), reply(b"{}")) as server:
        delegate = stage.delegate(ssm_url=server.url)
        stage.play(delegate=delegate).close(usher.CloseMode.LEAVE)  # starts the threads, which take memory too
        stage.settle()
        playback = stage.play(delegate=delegate, tag="a")
        peak()
        before = resident()
        stage.settle()
        grown = peak() - before
        playback.close()
    assert len(server.requests) > 1
    assert grown < most


# ---- too deep --------------------------------------------------------------------------------------------------------


def nested(depth: int) -> str:
    """Returns a valid reply of the session manager that contains nested arrays, so that the JSON is ``depth`` levels
    deep."""
    return '{"sessionToken":"t","heartbeat":60,"more":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


@pytest.mark.parametrize("depth", [32, 33, 100_000])
def test_json_deeperThan32_isNotRead(stage: Stage, depth: int) -> None:
    with RawServer(reply(nested(depth).encode()), reply(b"{}")) as server:
        playback = stage.play(delegate=stage.delegate(ssm_url=server.url), tag="a")
        stage.settle()
        if depth == 32:
            assert "SESSION_STARTED" in stage.events.types("a")
        else:
            assert stage.events.error(usher.EventType.SETUP_ERROR, "a").status is usher.Status.PROTOCOL
        playback.close()
        stage.settle()


def test_setupBody_deeperThan32_isRefused(stage: Stage) -> None:
    stage.delegate(setup_body='{"a":' * 30 + "1" + "}" * 30)
    with pytest.raises(usher.InvalidArgumentError):
        stage.delegate(setup_body='{"a":' * 40 + "1" + "}" * 40)


# ---- a proxy that refuses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "http_status", "words"),
    [(b"407 Sign in", 407, "proxy asks for a sign-in"), (b"403 Forbidden", -1, "cannot be reached")],
    ids=["407", "403"],
)
def test_proxy_thatRefusesCONNECT_isNamedInTheError(
    stage_factory: Callable[..., Stage], status: bytes, http_status: int, words: str
) -> None:
    """The session manager is behind a proxy, and the proxy refuses CONNECT. The error has the proxy's HTTP status only
    if it is 407: every other status could be mistaken for a reply of the session manager."""
    with RawServer(reply(b"", status=status)) as proxy:
        stage = stage_factory(proxy=proxy.url)
        stage.play(delegate=stage.delegate(ssm_url="https://tenant.example.invalid/"), tag="a")
        stage.settle()
        error = stage.events.error(usher.EventType.SETUP_ERROR, "a")
        assert proxy.requests[0].startswith(b"CONNECT tenant.example.invalid:443")
    assert (error.status, error.http_status) == (usher.Status.TRANSPORT, http_status), error
    assert f"the proxy replied with HTTP {status[:3].decode()}" in str(error)
    assert words in error.explain().summary
