"""A fixture of the stories, the security tests and the seeds. It checks that each test leaves nothing open: the process
has no more descriptors and threads than before. After a story it also checks that every handle of the story is stale,
and that a closed context has no timer. (``stage_factory`` checks that no head-end has a connection left.)

If a test leaves something open on purpose, it has the marker ``keeps_resources(reason)``.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_usher.fixtures import FAILED
from stage import REAL_TIMEOUT_S

RECORD = pytest.StashKey[Any]()
"""The key under which pytest stores the record of all calls of the library in this process (``stories/calls.py``). Only
the stories have this record."""


def numbers() -> tuple[set[str], set[str]]:
    """Returns the open descriptors and the threads of this process, as numbers. The list of descriptors also has the
    lowest free number, because this function itself opens a descriptor to read the list."""
    return set(os.listdir("/proc/self/fd")), set(os.listdir("/proc/self/task"))


def descriptors() -> dict[str, str]:
    """For each open descriptor of this process, returns the file or socket to which it refers."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def thread(number: str) -> str:
    """Returns the name of a thread; an empty text if the thread has ended."""
    for known in threading.enumerate():
        if str(known.native_id) == number:
            return known.name
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/self/task/{number}/comm").read_text(encoding="utf-8").strip()
    return ""


@functools.cache
def library(path: str) -> Any:
    """The library under test, loaded a second time; here its functions return the status instead of raising an
    exception."""
    return ctypes.CDLL(path)


class Given:
    """Records the handles that the library gives to a story, and the timers that a closed context still has."""

    def __init__(self) -> None:
        from usher._c import abi, ffi

        self._abi = abi
        self._library = library(ffi.lib._name)
        self._frees = {
            abi.PlaybackHandle: self._library.usher_playback_free,
            abi.PlayerHandle: self._library.usher_player_free,
            abi.DelegateHandle: self._library.usher_delegate_free,
            abi.LoaderHandle: self._library.usher_loader_free,
            abi.ResponseHandle: self._library.usher_response_free,
            abi.ContextHandle: self._library.usher_context_free,
        }
        self._handles: dict[int, tuple[str, Any]] = {}
        self.timers: list[str] = []

    def note(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Records the handles that a successful call of the library gave out. After usher_context_close also records
        whether the context still has a timer."""
        if name == "usher_context_close":
            left = self._abi.Pending(struct_size=ctypes.sizeof(self._abi.Pending))
            if self._library.usher_context_pending(arguments[0], ctypes.byref(left)) == 0:
                is_idle = not (left.transfers or left.queued or left.callbacks)
                if is_idle and left.next_timer_ms != 2**64 - 1:
                    self.timers.append(f"a timer of a closed context, due in {left.next_timer_ms} ms")
        for argument in arguments:
            made = getattr(argument, "_obj", None)
            if made is not None and type(made) in self._frees and made.value:
                self._handles[made.value] = (name, type(made))

    def live(self) -> dict[str, str]:
        """Returns the handles that are still valid, and frees them."""
        found = {}
        for value, (name, kind) in self._handles.items():
            if self._frees[kind](kind(value)) == 0:
                found[f"handle {value:#x}"] = f"given by {name}"
        return found


@pytest.fixture(autouse=True)
def same_resources(lib: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test, waits until the process has the same resources as before the test; fails if the process still
    has more after some time."""
    record = request.config.stash.get(RECORD, None)
    given = Given() if record is not None else None
    if record is not None:
        record.given = given
    open_before, before = descriptors(), numbers()
    yield
    if record is not None:
        record.given = None
    if request.node.stash.get(FAILED, False) or request.node.get_closest_marker("keeps_resources"):
        return
    deadline, rounds = time.monotonic() + REAL_TIMEOUT_S, 0
    while any(now - then for now, then in zip(numbers(), before, strict=True)) and time.monotonic() < deadline:
        rounds += 1
        time.sleep(min(0.0001 * rounds, 0.01))
        if rounds % 50 == 0:
            gc.collect()  # Python closes what only a cycle of objects refers to
    found: dict[str, str] = {}
    if rounds and time.monotonic() >= deadline:
        now = descriptors()
        found |= {f"descriptor {number}": what for number, what in now.items() if open_before.get(number) != what}
        found |= {f"thread {number}": name for number in numbers()[1] - before[1] if (name := thread(number))}
    found |= given.live() if given is not None else {}
    assert not found, f"left after the story: {found}"
    assert given is None or not given.timers, given.timers
