"""Tests the token map of a multi-instance delegate: how it finds its entries, which entries it removes, and that it
does not grow without limit."""

from __future__ import annotations

import ctypes
import os
import resource
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import usher
from stage import Stage
from usher._c import ffi

TOKEN = "token.of.a.stream"


@pytest.fixture
def make(stage: Stage) -> Any:
    """Makes a delegate that has a token map."""

    def made(**options: Any) -> usher.MultiInstanceDelegate:
        return usher.MultiInstanceDelegate(
            stage.context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url, **options
        )

    return made


@pytest.fixture
def tokens(make: Any) -> Iterator[usher.TokenMap]:
    delegate = make()
    yield delegate.tokens
    delegate.close()


def test_map_setGetRemoveClear_isAMapping(tokens: usher.TokenMap) -> None:
    """setStreamToken(token, contentId) stores a token under its content id; the host removes the entry when it no
    longer needs the token (multi-instance page)."""
    assert (len(tokens), bool(tokens), "one" in tokens) == (0, False, False)
    tokens["one"], tokens["two"] = "a", "b"
    assert (len(tokens), bool(tokens), tokens["one"], tokens.get("two"), "one" in tokens) == (2, True, "a", "b", True)
    tokens["one"] = "c"
    assert (len(tokens), tokens["one"]) == (2, "c")
    del tokens["one"]
    assert (len(tokens), "one" in tokens, tokens.get("one"), tokens.get("one", 7)) == (1, False, None, 7)
    with pytest.raises(KeyError):
        del tokens["one"]
    with pytest.raises(KeyError):
        tokens["one"]
    tokens.clear()
    assert (len(tokens), "two" in tokens) == (0, False)
    with pytest.raises(TypeError):
        list(tokens)  # type: ignore[call-overload]


def test_map_keys_areBytes(tokens: usher.TokenMap) -> None:
    """The map compares content identifiers as bytes: they need not be UTF-8, may contain NUL, and two Unicode forms of
    one letter are different (delegates.md: Token map)."""
    keys: list[Any] = [b"\xff\xfe", b"a\0b", b"a", "\u00e9", "e\u0301", b"\0"]
    for index, key in enumerate(keys):
        tokens[key] = f"token-{index}"
    assert [tokens[key] for key in keys] == [f"token-{index}" for index in range(len(keys))]
    assert tokens["\u00e9".encode()] == "token-3", "a text key is the same as its UTF-8 bytes"
    assert 7 not in tokens


@pytest.mark.parametrize("key", [b"", "", b"x" * 65_537])
def test_map_keyThatIsNone_isRefused(tokens: usher.TokenMap, key: Any) -> None:
    """A content identifier must have between 1 byte and 64 kB; the map refuses any other identifier."""
    for call in (
        lambda: tokens.__setitem__(key, TOKEN),
        lambda: tokens[key],
        lambda: tokens.__delitem__(key),
        lambda: key in tokens,
    ):
        with pytest.raises(usher.InvalidArgumentError):
            call()
    tokens[b"x" * 65_536] = TOKEN
    assert tokens[b"x" * 65_536] == TOKEN


@pytest.mark.parametrize("token", ["", "a\nb", "a\rb", "a\0b", "x" * 70_000])
def test_map_tokenThatIsNone_isRefusedAndLeavesTheOld(tokens: usher.TokenMap, token: str) -> None:
    """A token must be a valid header value; the map refuses any other token and keeps the old one
    (protocol.md: Licences)."""
    tokens["id"] = TOKEN
    with pytest.raises(usher.InvalidArgumentError):
        tokens["id"] = token
    assert tokens["id"] == TOKEN
    with pytest.raises(TypeError):
        tokens[7] = TOKEN  # type: ignore[index]


def test_map_ofAnotherKindOfDelegate_isNotThere(stage: Stage, lib: Any) -> None:
    """Only a multi-instance delegate has a map (multi-instance page)."""
    delegate = stage.delegate()
    with pytest.raises(usher.StateError):
        lib.usher_delegate_clear_stream_tokens(delegate._handle)


def test_map_ofAFreedDelegate_isStale(make: Any) -> None:
    """Every call with a stale handle raises InvalidHandleError."""
    delegate = make()
    delegate.tokens["id"] = TOKEN
    delegate.close()
    for call in (
        lambda: delegate.tokens["id"],
        lambda: len(delegate.tokens),
        lambda: "id" in delegate.tokens,
        delegate.tokens.clear,
    ):
        with pytest.raises(usher.InvalidHandleError):
            call()


# ---- limits of size and time -----------------------------------------------------------------------------------------


def test_boundedMap_oneMore_pushesOutTheOldest(make: Any) -> None:
    """A full map removes the token that was set longest ago, so that memory does not grow without limit
    (multi-instance page)."""
    tokens = make(tokens_max=3).tokens
    for name in "abc":
        tokens[name] = name
    tokens["a"] = "again"
    tokens["d"] = "d"
    assert ["".join(name for name in "abcd" if name in tokens), len(tokens)] == ["acd", 3]


def test_boundedMap_withAllHeld_isFull(stage: Stage, make: Any) -> None:
    """A full map keeps the tokens that playbacks use. If playbacks use all tokens of the map, the map refuses a new
    token until a playback releases one (multi-instance page)."""
    delegate = make(tokens_max=2)
    players = [usher.Player(stage.context) for _ in range(2)]
    for name, player in zip("ab", players, strict=True):
        delegate.tokens[name] = stage.headend.content_token(content_id=name)
        stage._playbacks.append(player.play(delegate=delegate, content_id=name))
    stage.settle()
    with pytest.raises(usher.FullError):
        delegate.tokens["c"] = TOKEN
    assert sorted(name for name in "abc" if name in delegate.tokens) == ["a", "b"]
    delegate.tokens["a"] = stage.headend.content_token(content_id="a", device="2")
    players[0].stop()
    stage.settle()
    delegate.tokens["c"] = TOKEN
    assert sorted(name for name in "abc" if name in delegate.tokens) == ["b", "c"]


def test_mapWithALifetime_forgetsWhatNobodyHolds(stage: Stage, make: Any) -> None:
    """The map removes a token when the token's lifetime has passed on the context's clock, unless a playback uses this
    token (multi-instance page)."""
    delegate = make(time_to_live_ms=60_000)
    tokens = delegate.tokens
    tokens["held"] = stage.headend.content_token(content_id="held")
    tokens["old"] = TOKEN
    stage._playbacks.append(stage.player.play(delegate=delegate, content_id="held"))
    stage.advance(30_000)
    tokens["newer"] = TOKEN
    stage.advance(29_999)
    assert len(tokens) == 3
    stage.advance(1)
    assert ("old" in tokens, "newer" in tokens, "held" in tokens, len(tokens)) == (False, True, True, 2)
    stage.advance(30_000)
    assert (len(tokens), "held" in tokens) == (1, True)
    stage.player.stop()
    stage.settle()
    assert len(tokens) == 0, "the lifetime is over, and no playback holds the token"


@pytest.mark.skipif(
    "ASAN_OPTIONS" in os.environ, reason="AddressSanitizer keeps freed memory to detect later uses of it"
)
def test_map_ofAMillionSetsAndAsManyRemoves_doesNotGrow(make: Any, step: Callable[[str], None]) -> None:
    """If the host removes tokens that it no longer needs, memory use does not grow (multi-instance page)."""
    delegate = make()
    library = ctypes.CDLL(ffi.find_library())  # a second CDLL, whose functions are not traced and so are fast enough
    add, remove = library.usher_delegate_set_stream_token, library.usher_delegate_remove_stream_token
    add.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p
    remove.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    handle, token, window = delegate._handle.value, (TOKEN * 20).encode(), 1000

    def churn(first: int, count: int) -> None:
        failed = 0
        for number in range(first, first + count):
            new, old = b"content-%08d" % number, b"content-%08d" % (number - window)
            failed |= add(handle, new, 16, token)
            if number >= window:
                failed |= remove(handle, old, 16)
        assert not failed

    churn(0, 20_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for first in range(20_000, 1_000_000, 98_000):
        step(f"98,000 tokens, from {first:,} on")
        churn(first, 98_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert len(delegate.tokens) == window
    assert grown < 4096, f"{grown} kB more at the peak; {window} tokens of {len(token)} bytes are held"


def test_map_fromManyThreads_losesNothing(tokens: usher.TokenMap) -> None:
    """Any number of threads may set and read tokens at the same time; no token is lost."""
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(2000):
                key = f"{name}-{number % 50}"
                tokens[key] = f"{name}:{number}"
                assert tokens[key] == f"{name}:{number}"
                assert tokens.get(f"shared-{number % 7}", "x") is not None
                tokens[f"shared-{number % 7}"] = name
                if number % 3 == 0:
                    del tokens[key]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"thread-{index}",)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures, failures
    assert all(tokens[f"shared-{number}"].startswith("thread-") for number in range(7))
