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
    from ._errors import UsherError
    from .playback import Playback

_unpack, _at = reader(
    abi.Event,
    "type",
    "left",
    "sequence",
    "time_ms",
    "playback",
    "player",
    "tag",
    "period_ms",
    "lateness_ms",
    "error.status",
    "error.orphan_possible",
)
_TYPES = {int(member): member for member in EventType}
_get = registry.get
_new = object.__new__
_set = object.__setattr__


def _pass_event(address: int, number: int | None) -> None:
    listener = _get(number)
    if listener is None:
        return
    try:
        kind, left, sequence, time_ms, handle, player_handle, tag_number, period, lateness, status, orphan = _unpack(
            _at(address)
        )
        item = _get(tag_number)
        playback = tag = player = context = None
        if item is not None:
            tag = item.tag
            playback = item.reference()
        if playback is None:
            context = listener.context()
            if context is not None:  # the teardown of a session that the playback had left
                playback = context._playbacks.get(handle)
                tag = tag if playback is None else playback.tag
        elif not playback._handle:
            playback._adopt(abi.PlaybackHandle(handle))
        if playback is not None:
            player = playback.player
        elif context is not None:
            player = context._players.get(player_handle)
        values = {
            "type": _TYPES.get(kind) or EventType(kind),
            "left": left != 0,
            "sequence": sequence,
            "time_ms": time_ms,
            "playback": playback,
            "player": player,
            "tag": tag,
            "period_ms": period,
            "lateness_ms": lateness,
            "error": _error(address, playback) if status else None,
        }
        if orphan:  # otherwise the class has the value; a larger dictionary would take another 100 ns
            values["orphan_possible"] = True
        event = _new(Event)
        _set(event, "__dict__", values)
        listener.function(event)
    except BaseException as error:
        listener.failed(error)


def _error(address: int, playback: Playback | None) -> UsherError | None:
    error = ffi.from_detail(abi.Event.from_address(address).error)
    if error is not None and playback is not None:
        playback._causes.chain(error)
    return error


def changed_event(kind: type[Any], event: Event, changes: dict[str, Any]) -> Any:
    """Returns a copy of an event, of class `kind` and with other values of some fields."""
    copy = _new(kind)
    # Do not call the constructor: that of a frozen dataclass sets each field with a separate call, which takes more
    # than a microsecond.
    _set(copy, "__dict__", {**vars(event), **changes})
    return copy


# The callback takes addresses as numbers and not as pointers: ctypes would make an object for each pointer.
_by_address = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(_pass_event)
on_event = ctypes.cast(_by_address, abi.EventFn)
