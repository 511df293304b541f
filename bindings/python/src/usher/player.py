"""Players: one screen each."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING

from ._c import abi, ffi, registry
from ._c.enums import CloseMode
from ._errors import InvalidHandleError
from ._part import Part
from .playback import Item, PayloadCallback, Playback, RenewedCallback, on_payload, on_renewed

if TYPE_CHECKING:
    from .context import Context
    from .delegates.base import Delegate


class Player(Part):
    """One screen. It plays one playback at a time; playing the next one is a zap. Freed with close() or at the end of a ``with`` block."""

    _free = ffi.lib.usher_player_free

    def __init__(self, context: Context) -> None:
        """Makes a player. Raises InvalidHandleError, ClosedError."""
        super().__init__(context, abi.PlayerHandle())
        self._playback: Playback | None = None
        ffi.lib.usher_player_new(context._handle, ctypes.byref(self._handle))
        self._has_handle = True
        context._players[self._handle.value or 0] = self

    def play(
        self,
        content_token: str | None = None,
        *,
        delegate: Delegate | None = None,
        content_id: bytes | str | None = None,
        clear: bool = False,
        tag: object = None,
        payload: PayloadCallback | None = None,
        renewed: RenewedCallback | None = None,
    ) -> Playback:
        """Starts the next item; the earlier one is closed, and its session torn down before the new one is set up.

        The result arrives as the event SESSION_STARTED or SETUP_ERROR. Returns at once; with a sync delegate it first waits for set-up, at most
        `setup_timeout_ms`, and returns however that ended (and may then not be called inside a callback).

        Args:
            content_token: a header value: not empty, no CR, LF or NUL, at most 64 kB; may hold commas. Default: the token callback is asked; without
                one, Playback.set_content_token() may still give it for `token_wait_ms`.
            delegate: default: the context's.
            content_id: the content's identifier, bytes or text for its UTF-8; a multi-instance delegate finds the content token by it.
            clear: the item is not encrypted: it has no session and needs no token.
            tag: yours, anything; comes back in events and questions.
            payload: asked for a fresh challenge when the library itself must renew a licence. Answers bytes, or later, as a token callback does.
                Default: none; RENEWAL_DUE is raised instead.
            renewed: told the licences such renewals brought, as ``renewed(playback, license)``. Failures are told as events.

        Raises:
            InvalidHandleError, InvalidArgumentError, NoDelegateError, ClosedError, WouldDeadlockError.
        """
        playback = Playback(self.context, self, tag)
        wanted = abi.PlaybackOptions(
            struct_size=ctypes.sizeof(abi.PlaybackOptions),
            content_token=ffi.c_string(content_token, "content_token"),
            destroy=registry.destroy,
            clear=int(clear),
        )
        content = ffi.as_bytes(content_id)
        if content is not None:
            wanted.content_id, wanted.content_id_size = ffi.c_bytes(content), len(content)
        if payload is not None:
            wanted.payload = on_payload
        if renewed is not None:
            wanted.renewed = on_renewed
        item = Item(weakref.ref(self.context), weakref.ref(playback), tag, payload, renewed, [])
        out = abi.PlaybackHandle()
        while not self._start(wanted, item, delegate, out):
            pass
        playback._adopt(out)
        self._playback = playback
        return playback

    def _start(
        self, wanted: abi.PlaybackOptions, item: Item, delegate: Delegate | None, out: abi.PlaybackHandle
    ) -> bool:
        """usher_player_play(). False: the context's delegate was replaced and freed by another thread just then."""
        # Chosen here, so that it is the one kept alive: another thread may replace the context's any number of times meanwhile. One whose handle
        # was given up lives on in the context only, which then chooses.
        chosen = self.context._delegate if delegate is None else delegate
        named = chosen is not None and (delegate is not None or chosen._has_handle)
        wanted.delegate = chosen._handle if chosen is not None and named else abi.DelegateHandle()
        item.delegates.append(chosen)
        wanted.tag = wanted.user_data = registry.add(item)
        try:
            ffi.lib.usher_player_play(self._handle, ctypes.byref(wanted), ctypes.byref(out))
        except InvalidHandleError:
            if delegate is None and named and chosen is not None and not chosen._has_handle:
                return False
            raise
        item.delegates.append(self.context._delegate if delegate is None else delegate)
        return True

    def stop(self, mode: CloseMode | int = CloseMode.DEFAULT) -> None:
        """Closes what it plays, and what still waits for its turn, as Playback.close() does. Nothing playing: does nothing.

        Raises:
            InvalidHandleError, InvalidArgumentError.
        """
        ffi.lib.usher_player_stop(self._handle, mode)

    def close(self) -> None:
        """Stops and frees it. Again: does nothing."""
        super().close()
        self._playback = None

    def _let_go(self) -> None:
        """Frees the playback it keeps, without waiting."""
        if self._playback is not None:
            self._playback.free()
