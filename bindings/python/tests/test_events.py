"""Tests how an event of C becomes an `Event`."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator

import pytest

import usher
from usher._c import abi, layout, registry
from usher._callbacks import HostFunction
from usher._events import on_event


@pytest.fixture
def received() -> Iterator[tuple[int, list[usher.Event]]]:
    """The number of an observer, and the events that it has received."""
    with usher.Context() as context:
        events: list[usher.Event] = []
        number = registry.add(HostFunction(weakref.ref(context), "observer", events.append))
        yield number, events
        registry._entries.pop(number)


def test_event_everyField_hasTheValueThatCPassed(received: tuple[int, list[usher.Event]]) -> None:
    number, events = received
    raw = abi.Event(ctypes.sizeof(abi.Event), 5, 1, 2**63, 2**40 + 1, 77, 78, 2**50, 2**33, 2**34)
    on_event(ctypes.pointer(raw), number)
    assert events == [
        usher.Event(
            type=usher.EventType.KEPT_ALIVE,
            left=True,
            sequence=2**63,
            time_ms=2**40 + 1,
            playback=None,
            player=None,
            tag=None,
            period_ms=2**33,
            lateness_ms=2**34,
            error=None,
        )
    ]
    assert not events[0].orphan_possible and not events[0].must_stop


def test_event_withAnError_hasTheErrorAndItsFlags(received: tuple[int, list[usher.Event]]) -> None:
    number, events = received
    error = abi.Error(-31, 2, 3, 403, 1007, b"too many", must_stop=1, orphan_possible=1, retry_after_ms=1500)
    on_event(ctypes.pointer(abi.Event(type=3, error=error)), number)
    (event,) = events
    assert isinstance(event.error, usher.UsherError) and event.must_stop and event.orphan_possible
    assert (event.error.http_status, event.error.service_code, event.error.retry_after) == (403, 1007, 1.5)
    assert event.error.message == "too many"


def test_event_ofUnknownType_hasItsNumber(received: tuple[int, list[usher.Event]]) -> None:
    number, events = received
    on_event(ctypes.pointer(abi.Event(type=999)), number)
    assert events[0].type == 999 and events[0].type.name == "UNKNOWN_999"


def test_reader_fieldsOutOfOrder_areRefused() -> None:
    with pytest.raises(ValueError, match="left: not in the order"):
        layout.reader(abi.Event, "sequence", "left")
