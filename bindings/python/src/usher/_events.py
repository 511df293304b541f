"""Makes an `Event` from the event that C passes to an observer.

This code runs for each heartbeat of each playback, so it is written for speed: `make bench PARTS=overhead` measures it.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ._c import abi, ffi, registry
from ._c.enums import EventType
from ._c.layout import reader
from .event import Event

if TYPE_CHECKING:
    from ._callbacks import HostFunction
    from ._errors import UsherError
    from .playback import Item, Playback
    from .player import Player

_unpack, _at = reader(
    abi.Event,
    "type",
    "left",
    "sequence",
    "time_ms",
    "tag",
    "period_ms",
    "lateness_ms",
    "error.status",
    "error.orphan_possible",
)
_TYPES = {int(member): member for member in EventType}
_get = registry.get
_new = tuple.__new__


def _pass_event(address: int, number: int | None) -> None:
    listener = _get(number)
    if listener is None:
        return
    try:
        kind, left, sequence, time_ms, tag_number, period, lateness, status, orphan = _unpack(_at(address))
        item = _get(tag_number)
        if item is not None and (playback := item.reference()) is not None and playback._is_adopted:
            player = playback.player
            tag = item.tag
        else:
            playback, player, tag = _subject(address, listener, item)
        listener.function(
            _new(
                Event,
                (
                    _TYPES.get(kind) or EventType(kind),
                    left != 0,
                    sequence,
                    time_ms,
                    playback,
                    player,
                    tag,
                    period,
                    lateness,
                    _error(address, playback) if status else None,
                    orphan != 0,
                ),
            )
        )
    except BaseException as error:
        listener.failed(error)


def _subject(address: int, listener: HostFunction, item: Item | None) -> tuple[Playback | None, Player | None, object]:
    """Returns playback, player and tag of an event. The observer calls this only if it cannot take them from `item`:
    the item is gone, or its playback has no handle yet or was freed."""
    raw = abi.Event.from_address(address)
    tag = None if item is None else item.tag
    playback = None if item is None else item.playback(raw.playback)
    if playback is not None:
        return playback, playback.player, tag
    context = listener.context()
    if context is None:
        return None, None, tag
    playback = context._playbacks.get(raw.playback.value or 0)
    if playback is None:
        return None, context._players.get(raw.player.value or 0), tag
    return playback, playback.player, playback.tag  # the teardown of a session that the playback had left


def _error(address: int, playback: Playback | None) -> UsherError | None:
    error = ffi.from_detail(abi.Event.from_address(address).error)
    if error is not None and playback is not None:
        playback._causes.chain(error)
    return error


def changed_event(kind: type[Any], event: Event, **changes: Any) -> Any:
    """Returns a copy of an event, of class `kind` and with other values of some fields."""
    return kind._make((event._asdict() | changes).values())


# The callback takes addresses as numbers and not as pointers: ctypes would make an object for each pointer.
_by_address = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(_pass_event)
on_event = ctypes.cast(_by_address, abi.EventFn)
