"""Wrong arguments: the error names the option, says what is wrong with its value, and how to correct it."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import usher
from usher._options import ENUMERATIONS, LARGEST
from usher.testing.headend import Fault, HeadEnd

URL = "https://license.example/"


@pytest.fixture(scope="module")
def context() -> Iterator[usher.Context]:
    with usher.Context(clock="manual") as made:
        yield made


def ssp(**options: Any) -> Callable[[usher.Context], object]:
    return lambda context: usher.SSPDelegate(context, **{"license_url": URL, **options})


def made(**options: Any) -> Callable[[usher.Context], object]:
    return lambda _: usher.Context(**options)


def play(token: Any = "token", **options: Any) -> Callable[[usher.Context], object]:
    def call(context: usher.Context) -> object:
        with usher.Player(context) as player, usher.SSPDelegate(context, license_url=URL) as delegate:
            return player.play(token, **{"delegate": delegate, **options})

    return call


def request(**given: Any) -> Callable[[usher.Context], object]:
    def call(context: usher.Context) -> object:
        with usher.Player(context) as player, usher.SSPDelegate(context, license_url=URL) as delegate:
            playback = player.play("token", delegate=delegate)
            return playback.get_license(**{"key_system": usher.KeySystem.CLEARKEY, "payload": b"{}", **given})

    return call


TYPES: list[tuple[Callable[[usher.Context], object], str]] = [
    (
        ssp(setup_timeout_ms="5000"),
        "setup_timeout_ms: '5000' is a str; give whole milliseconds as an int, e.g. setup_timeout_ms=5000",
    ),
    (
        ssp(setup_timeout_ms=5.5),
        "setup_timeout_ms: 5.5 is a float; give whole milliseconds as an int, e.g. setup_timeout_ms=6",
    ),
    (ssp(setup_timeout_ms=True), "setup_timeout_ms: True is a bool; give whole milliseconds as an int"),
    (ssp(sync_setup_teardown="yes"), "sync_setup_teardown: this is a str; give True or False"),
    (ssp(license_url=b"S3cr3t"), "license_url: this is a bytes, not a str; decode it first"),
    (ssp(extra_headers={"A": 5}), "extra_headers: the value of A: this is an int, not a str"),
    (ssp(token_callback=5), "token_callback: 5 is an int; give a function"),
    (ssp(licence_url=URL), "SSPDelegate() has no option 'licence_url': did you mean 'license_url'?"),
    (ssp(setup_timeout=5), "SSPDelegate() has no option 'setup_timeout': did you mean 'setup_timeout_ms'?"),
    (made(clok="manual"), "Context() has no option 'clok': did you mean 'clock'?"),
    (made(zzz=1), "Context() has no option 'zzz'"),
    (made(log=5), "log: 5 is an int; give a function"),
    (lambda _: usher.Player("x"), "context: this is a str, not a Context"),  # type: ignore[arg-type]
    (lambda _: usher.SSPDelegate("x", license_url=URL), "context: this is a str, not a Context"),  # type: ignore[arg-type]
    (lambda _: usher.CustomerDelegate("x"), "context: this is a str, not a Context"),  # type: ignore[arg-type]
    (lambda context: context.add_observer(5), "observer: 5 is an int; give a function"),  # type: ignore[arg-type]
    (lambda context: context.advance("5"), "ms: '5' is a str; give a whole number as an int"),  # type: ignore[arg-type]
    (lambda context: context.advance("123456789012S3cr3t"), "ms: this is a str; give a whole number as an int"),  # type: ignore[arg-type]
    (lambda context: context.set_delegate("x"), "delegate: this is a str, not a Delegate"),  # type: ignore[arg-type]
    (lambda context: usher.CustomerDelegate(context, license=5), "license: 5 is an int; give a function"),  # type: ignore[arg-type]
    (lambda context: usher.ResourceLoader(context, spc=5), "spc: 5 is an int; give a function"),  # type: ignore[arg-type]
    (
        lambda context: usher.ResourceLoader(context, spc=lambda _: b"", certificate="x"),  # type: ignore[typeddict-item]
        "certificate: this is a str, not bytes; encode it first",
    ),
    (play(b"S3cr3t"), "content_token: this is a bytes, not a str; decode it first"),
    (play(delegate="x"), "delegate: this is a str, not a Delegate"),
    (play(payload=5), "payload: 5 is an int; give a function"),
    (request(payload="S3cr3t"), "payload: this is a str, not bytes; encode it first"),
    (
        lambda _: usher.clear_key_request(["00" * 16]),  # type: ignore[list-item]
        "kids[0]: this is a str, not bytes; convert 32 hex digits with bytes.fromhex()",
    ),
]

OPTIONS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: usher.SSPOptions(license_url=URL, setup_timeout_ms="5000"),  # type: ignore[typeddict-item]
        "setup_timeout_ms: '5000' is a str; give whole milliseconds as an int, e.g. setup_timeout_ms=5000",
    ),
    (
        lambda: usher.SSPOptions(licence_url=URL),  # type: ignore[typeddict-unknown-key]
        "SSPOptions() has no option 'licence_url': did you mean 'license_url'?",
    ),
    (
        lambda: usher.ContextOptions(clock="fake"),  # type: ignore[typeddict-item]
        "clock: 'fake' is none of 'system', 'manual'",
    ),
    (lambda: usher.ContextOptions(journal_key="S3cr3t"), "journal_key: this is a str, not bytes"),  # type: ignore[typeddict-item]
    (lambda: usher.SSPV2Options(license_url=URL, jitter_permille=501), "the largest value is 500"),
    (lambda: usher.MultiInstanceOptions(license_url=URL, tokens_max=-1), "tokens_max: -1 is negative"),
    (lambda: usher.DefaultOptions(extra_headers={"A": 5}), "extra_headers: the value of A"),  # type: ignore[dict-item]
    (lambda: usher.CustomerOptions(suspend="pauze"), "did you mean 'pause'?"),  # type: ignore[typeddict-item]
    (lambda: usher.LoaderOptions(allowed_hosts=["a b"]), "allowed_hosts: a host is empty or has a blank in it"),
    (lambda: usher.LoaderOptions(certificate="x"), "certificate: this is a str, not bytes; encode it first"),  # type: ignore[typeddict-item]
]

VALUES: list[tuple[Callable[[usher.Context], object], str]] = [
    (ssp(setup_timeout_ms=-1), "setup_timeout_ms: -1 is negative"),
    (ssp(setup_timeout_ms=1 << 32), "setup_timeout_ms: 4294967296 is too large; the largest value is 4294967295"),
    (ssp(jitter_permille=501), "jitter_permille: 501 is too large; the largest value is 500"),
    (ssp(suspend="pauze"), "suspend: 'pauze' is none of 'keep', 'pause': did you mean 'pause'?"),
    (ssp(suspend=7), "suspend: 7 is none of 'keep', 'pause'"),
    (ssp(license_url=None), "license_url: missing, and required"),
    (made(clock="fake"), "clock: 'fake' is none of 'system', 'manual'"),
    (made(log_level=99), "log_level: 99 is none of 'error', 'warning', 'info', 'debug', 'trace'"),
    (made(ca_file="/nonexistent"), "ca_file: '/nonexistent': not a file that can be read (no such file or directory)"),
    (made(ca_file="/"), "ca_file: '/': not a file that can be read (it is a directory)"),
    (play("S3cr3t\n"), "it ends with a line break, as a text from a file may; use .strip()"),
    (play(delegate=None), "pass delegate=, or call Context.set_delegate()"),
    (request(key_system="x"), "key_system: 'x': unknown value; give a KeySystem, such as KeySystem.WIDEVINE"),
    (request(type=7), "type: 7 is none of LicenseType.REQUEST, LicenseType.RENEWAL"),
    (lambda _: usher.clear_key_request([bytes(4)]), "kids[0]: 4 bytes; a key id has 16"),
    (lambda _: usher.clear_key_request([]), "kids: there are 0; give 1 to 1024 key ids"),
    (lambda _: usher.explain("TIMOUT"), "did you mean 'timeout'?"),
]


@pytest.mark.parametrize(("call", "words"), TYPES, ids=[words[:60] for _, words in TYPES])
def test_wrongType_isATypeErrorThatSaysHowToCorrectIt(
    context: usher.Context, call: Callable[[usher.Context], object], words: str
) -> None:
    with pytest.raises(TypeError) as caught:
        call(context)
    assert words in str(caught.value)
    assert "S3cr3t" not in str(caught.value)


@pytest.mark.parametrize(("call", "words"), VALUES, ids=[words[:60] for _, words in VALUES])
def test_wrongValue_isNamedWithItsCorrection(
    context: usher.Context, call: Callable[[usher.Context], object], words: str
) -> None:
    with pytest.raises(usher.UsherError) as caught:
        call(context)
    assert words in str(caught.value)
    assert "S3cr3t" not in str(caught.value)
    assert "usher_" not in str(caught.value), "a name of C"


@pytest.mark.parametrize(("make", "words"), OPTIONS, ids=[words[:60] for _, words in OPTIONS])
def test_optionsObject_wrongOption_isRefusedWhereItIsMade(make: Callable[[], object], words: str) -> None:
    """An object with options checks these options when it is made, even if no context ever uses the object."""
    with pytest.raises((TypeError, usher.InvalidArgumentError)) as caught:
        make()
    assert words in str(caught.value) and "S3cr3t" not in str(caught.value)


def test_optionsObject_rightOptions_areADictThatAContextTakes() -> None:
    options = usher.SSPOptions(license_url=URL, setup_timeout_ms=5000, suspend="pause", certificate_url=None)
    assert options == {"license_url": URL, "setup_timeout_ms": 5000, "suspend": "pause", "certificate_url": None}
    assert copy.deepcopy(options) == options
    shown = "SSPOptions(license_url=<str>, setup_timeout_ms=5000, suspend=<str>, certificate_url=None)"
    assert repr(options) == shown, "a URL may have a token in its query"
    with usher.Context(**usher.ContextOptions(clock="manual")) as made, usher.SSPDelegate(made, **options):
        pass


def test_closedObjects_areNamed() -> None:
    """The host uses objects that are closed, or belong to another context; the error names the object."""
    context, other = usher.Context(clock="manual"), usher.Context()
    delegate, player = usher.SSPDelegate(context, license_url=URL), usher.Player(context)
    foreign = usher.SSPDelegate(other, license_url=URL)
    with pytest.raises(usher.InvalidArgumentError, match="delegate: this SSPDelegate belongs to another context"):
        player.play("token", delegate=foreign)
    with pytest.raises(usher.StateError, match="has no manual clock; make it with Context"):
        other.advance(1)
    playback = player.play("token", delegate=delegate)
    playback.free()
    with pytest.raises(usher.InvalidHandleError, match="Playback is closed, or its Player is"):
        playback.suspend()
    delegate.close()
    with pytest.raises(usher.InvalidHandleError, match="delegate: this SSPDelegate is closed"):
        player.play("token", delegate=delegate)
    player.close()
    with pytest.raises(usher.InvalidHandleError, match="Player is closed, or its Context is"):
        player.stop()
    context.close()
    other.close()
    with pytest.raises(usher.InvalidHandleError, match=r"^Context is closed$"):
        usher.Player(context)


def test_enumerations_asWords_areThoseOfTheHeader(context: usher.Context) -> None:
    """Every option with an enumeration takes the names of its members in lower case."""
    assert {"clock", "suspend", "wire_format", "route"} <= ENUMERATIONS.keys()
    assert LARGEST == {"jitter_permille": 500, "retry_permille": 1000}
    for word in ("keep", "pause"):
        with usher.SSPDelegate(context, license_url=URL, suspend=word, jitter_permille=usher.OFF):  # type: ignore[arg-type]
            pass


def test_waitSession_refused_hasTheWholeError() -> None:
    """The account has no free slot; wait_session() raises the server's whole error."""
    with HeadEnd(limit=1) as headend, usher.Context() as context:
        delegate = usher.SSPDelegate(context, license_url=headend.license_url("clearkey"), ssm_url=headend.ssm_url)
        with (
            usher.Player(context) as first,
            first.play(headend.content_token("alice"), delegate=delegate) as one,
            usher.Player(context) as second,
            second.play(headend.content_token("alice"), delegate=delegate) as two,
        ):
            one.wait_session()
            with pytest.raises(usher.LimitError) as caught:
                two.wait_session()
    error = caught.value
    assert (error.service_code, error.http_status, error.origin) == (1007, 400, usher.Origin.SSM)
    assert error.must_stop


@pytest.mark.parametrize(
    ("fault", "status", "code"), [(Fault.status(503), 503, 0), (Fault.error(1012, status=403), 403, 1012)]
)
def test_waitSession_failed_hasTheWholeError(fault: Fault, status: int, code: int) -> None:
    """The session manager is down, or refuses the token; wait_session() raises what the server has said."""
    with HeadEnd() as headend, usher.Context() as context, usher.Player(context) as player:
        headend.faults.add("setup", fault, always=True)
        delegate = usher.SSPDelegate(context, license_url=headend.license_url("clearkey"), ssm_url=headend.ssm_url)
        token = headend.content_token("alice")
        with player.play(token, delegate=delegate) as playback, pytest.raises(usher.UsherError) as caught:
            playback.wait_session()
    error = caught.value
    assert (error.http_status, error.origin, error.operation) == (status, usher.Origin.SSM, usher.Operation.SETUP)
    assert (error.service_code, error.must_stop) == (code, True)


def test_aioPlay_asAContextManager_closesThePlayback() -> None:
    """``async with player.play()`` gives the playback, and closes it at the end of the block."""

    async def run(headend: HeadEnd) -> None:
        async with usher.aio.Context() as context:
            delegate = usher.aio.SSPDelegate(
                context, license_url=headend.license_url("clearkey"), ssm_url=headend.ssm_url
            )
            async with usher.aio.Player(context) as player:
                async with player.play(headend.content_token("alice"), delegate=delegate) as playback:
                    await playback.wait_session()
                    assert repr(playback) == "<usher.aio.Playback, session ACTIVE>"
                assert "closed" in repr(playback)
                later = await player.play(headend.content_token("alice"), delegate=delegate)
                task = asyncio.create_task(player.play(headend.content_token("alice"), delegate=delegate))
                assert isinstance(await task, usher.aio.Playback)
                assert later is not await task
            with pytest.raises(TypeError, match="do not mix the classes of usher and"):
                usher.Player(context)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="delegate: this is a str, not a Delegate"):
                context.set_delegate("x")  # type: ignore[arg-type]

    with HeadEnd() as headend:
        asyncio.run(run(headend))
        assert not headend.sessions.active()
