"""Players: each is one screen."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _border
from ._c import abi, ffi, registry
from ._c.enums import CloseMode, NoticeType
from ._callbacks import register, subject
from ._errors import InvalidHandleError
from ._part import Part
from .context import Observer
from .delegates.base import Delegate
from .event import Notice
from .playback import Item, PayloadCallback, Playback, RenewedCallback, on_payload, on_renewed

if TYPE_CHECKING:
    from .context import Context


NoticeCallback = Callable[[Notice], object]


class Player(Part):
    """One screen. It plays one playback at a time. To start the next playback while another one plays is called a zap.

    close(), or the end of a ``with`` block, frees the player. Threads: any.
    """

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
        """Starts the next item on this player. First closes the current item, if there is one: the library tears its
        session down before it sets up the next session, unless the delegate's option `zap_without_waiting` is set.

        With customer SSM the library calls teardown() of the current item, if there is one, and waits for its answer.

        The call returns at once; the result arrives as the event SESSION_STARTED or SETUP_ERROR. With a sync delegate
        (option `sync_setup_teardown`) the call waits until set-up has succeeded or failed, at most for
        `setup_timeout_ms`, and is not allowed in callbacks. In pumped mode such a call pumps while it waits.

        Args:
            content_token: a header value: not only blanks, no control character except tab, at most 64 kB; commas
                are allowed. Default: the library calls the token callback; without a token callback, it waits
                `token_wait_ms` for Playback.set_content_token(). Default, common and customer SSM delegates need no
                token.
            delegate: default: the delegate of the context. A clear item needs none.
            content_id: the content identifier, bytes, or text that is encoded as UTF-8. A multi-instance delegate uses
                it to find the content token.
            clear: the item is not encrypted; it has no session and needs no token.
            tag: any object of the host; events and questions have it as their `tag`.
            payload: a function that makes a new challenge when the library must renew a licence. It returns bytes, or
                answers later, like a token callback. Default: the library sends the event RENEWAL_DUE instead (a
                customer delegate gets the last payload again).
            renewed: a function that gets the renewed licences, ``renewed(playback, license)``. Failures are events.

        Raises:
            InvalidHandleError, InvalidArgumentError, NoDelegateError, ClosedError, WouldDeadlockError.
        """
        for name, function in (("payload", payload), ("renewed", renewed)):
            if function is not None:
                _border.function(function, name)
        wanted = self._wanted(content_token, delegate, content_id, clear)
        playback = Playback(self.context, self, tag)
        if payload is not None:
            wanted.payload = on_payload
        if renewed is not None:
            wanted.renewed = on_renewed
        item = Item(weakref.ref(self.context), weakref.ref(playback), tag, payload, renewed, [])
        out = abi.PlaybackHandle()
        given = {"content_token": content_token, "content_id": content_id}

        def start() -> None:
            ffi.lib.usher_player_play(self._handle, ctypes.byref(wanted), ctypes.byref(out))

        try:
            while not _border.passed(lambda: self._start(wanted, item, delegate, start), given):
                pass
        except BaseException:
            playback._has_handle = False
            raise
        used = item.delegates[-1]
        playback._free_waits = self._free_waits = used is not None and used._is_sync
        playback._adopt(out)
        self._playback = playback
        return playback

    def prepare(
        self,
        content_token: str | None = None,
        *,
        delegate: Delegate | None = None,
        content_id: bytes | str | None = None,
        clear: bool = False,
        tag: object = None,
        keep_ms: int = 0,
    ) -> None:
        """Prepares the item that play() will probably start next, while the current one still plays.

        The library opens the connections to the servers, downloads the certificate of the delegate, and asks the token
        callback for the content token, if the item has none; it takes no slot. If play() then starts the same item,
        the playback uses the results. The item is the same if `delegate`, `content_token`, `content_id` and `clear`
        are the same. If play() starts another item, the library drops the prepared item; a call of prepare() for
        another item replaces it. No event reports a prepared item. A request of the token callback has `tag`, but no
        playback.

        Args:
            keep_ms: after this time the library drops the item, milliseconds on the context's clock; 0 means 60000.

        The other arguments, and the errors, are those of play().
        """
        wanted = self._wanted(content_token, delegate, content_id, clear)
        keep = ffi.integer(keep_ms, 32, "keep_ms")
        item = Item(weakref.ref(self.context), lambda: None, tag, None, None, [])
        given = {"content_token": content_token, "content_id": content_id}

        def start() -> None:
            ffi.lib.usher_player_prepare(self._handle, ctypes.byref(wanted), keep)

        while not _border.passed(lambda: self._start(wanted, item, delegate, start), given):
            pass

    def _wanted(
        self, content_token: str | None, delegate: Delegate | None, content_id: bytes | str | None, clear: bool
    ) -> abi.PlaybackOptions:
        """Makes the C structure of an item."""
        if delegate is not None:
            _border.open_part(_border.instance(delegate, Delegate, "delegate"), self.context, "delegate")
        wanted = abi.PlaybackOptions(
            struct_size=ctypes.sizeof(abi.PlaybackOptions),
            content_token=ffi.c_string(content_token, "content_token"),
            destroy=registry.destroy,
            clear=_border.flag(clear, "clear"),
        )
        content = ffi.as_bytes(content_id, "content_id")
        if content is not None:
            wanted.content_id, wanted.content_id_size = ffi.c_bytes(content), len(content)
        return wanted

    def _start(
        self, wanted: abi.PlaybackOptions, item: Item, delegate: Delegate | None, start: Callable[[], None]
    ) -> bool:
        """Calls `start`, which starts or prepares the item. Returns False if another thread just replaced and freed the
        context's delegate."""
        # Another thread may replace the context's delegate during this call. So this method passes the delegate of the
        # context explicitly, and keeps this delegate alive. If the host has freed the handle of this delegate, the
        # method passes no delegate, and the library uses the context's delegate.
        chosen = self.context._delegate if delegate is None else delegate
        named = chosen is not None and (delegate is not None or chosen._has_handle)
        wanted.delegate = chosen._handle if chosen is not None and named else abi.DelegateHandle()
        item.delegates.append(chosen)
        wanted.tag = wanted.user_data = registry.add(item)
        try:
            start()
        except InvalidHandleError:
            if delegate is None and named and chosen is not None and not chosen._has_handle:
                return False
            raise
        item.delegates.append(self.context._delegate if delegate is None else delegate)
        return True

    def add_observer(self, observer: NoticeCallback) -> Observer:
        """Adds an observer, a function that gets one Notice for each thing that a viewer must know.

        The observer gets notices about one item only: the newest item that play() has started after this call. The
        observer runs on the same threads as the observers of the context. close() of the player removes it, so call
        stop() first if you want the last notice of the last item.

        Raises:
            InvalidHandleError, ClosedError.
        """
        number = ctypes.c_uint64()
        entry = register(self.context, "observer", _border.function(observer, "observer"))
        ffi.lib.usher_player_add_observer(self._handle, _on_notice, entry, registry.destroy, ctypes.byref(number))
        return Observer(self.context, number.value)

    def stop(self, mode: CloseMode | int = CloseMode.DEFAULT) -> None:
        """Closes the current playback, and the playbacks that still wait to start, as Playback.close() does.

        If no item plays, and the host left the session of the last playback, TEARDOWN tears this session down.

        Raises:
            StateError: the host left this session, and the library does not have its token: either it never got the
                token, or you have freed the playback.
            InvalidHandleError, InvalidArgumentError.
        """
        ffi.lib.usher_player_stop(self._handle, _border.member(mode, CloseMode, "mode"))

    def _state(self) -> str:
        playback = self._playback
        return "idle" if playback is None or playback._is_closed else f"plays {playback!r}"

    def close(self) -> None:
        """Closes the player's playbacks and frees the player. A second call does nothing."""
        super().close()
        self._playback = None

    def _free_playback(self) -> None:
        """Frees the handle of the current playback, without waiting."""
        if self._playback is not None:
            self._playback.free()


def _pass_notice(pointer: Any, number: int | None) -> None:
    listener = registry.get(number)
    if listener is None:
        return
    try:
        listener.function(_notice(listener.context(), pointer.contents))
    except BaseException as error:
        listener.failed(error)


def _notice(context: Context | None, raw: Any) -> Notice:
    playback, tag = subject(raw.playback, raw.tag)
    return Notice(
        type=NoticeType(raw.type),
        playback=playback,
        player=None if context is None else context._players.get(raw.player.value or 0),
        tag=tag,
        error=ffi.from_detail(raw.error),
        summary=ffi.text(raw.summary),
        advice=ffi.text(raw.advice),
    )


_on_notice = abi.NoticeFn(_pass_notice)
