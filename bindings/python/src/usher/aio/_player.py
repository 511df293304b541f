"""Players: each is one screen."""

from __future__ import annotations

import dataclasses
from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any

from .. import _border
from .. import event as _event
from .. import playback as _playback
from .. import player as _player
from .._c.enums import CloseMode
from ..context import Observer
from ..license import License
from ._context import Context, blocking_of
from ._play import Play
from ._playback import Playback
from ._requests import Notice, NoticeCallback, PayloadCallback, PayloadRequest, RenewedCallback, question_here

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._delegates import Delegate


class Starting(Coroutine[Any, Any, Playback]):
    """The result of Player.play(): await it, or use it in ``async with``."""

    def __init__(self, work: Coroutine[Any, Any, Playback]) -> None:
        """Only Player.play() calls it."""
        self._work = work
        self._playback: Playback | None = None

    def send(self, value: Any) -> Any:
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, None, Playback]:
        return self._work.__await__()

    async def __aenter__(self) -> Playback:
        self._playback = await self._work
        return self._playback

    async def __aexit__(self, *exception: object) -> None:
        if self._playback is not None:
            await self._playback.__aexit__(*exception)


class Player:
    """One screen. It plays one playback at a time. To start the next playback while another one plays is called a
    zap."""

    def __init__(self, context: Context) -> None:
        """Makes a player. Raises InvalidHandleError, ClosedError."""
        self.context = _border.instance(context, Context, "context")
        self._blocking = _player.Player(context.blocking)
        self._playback: Playback | None = None
        context._players[self._blocking._handle.value or 0] = self

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
    ) -> Starting:
        """Starts the next item, without waiting for its session. The arguments are those of ``usher.Player.play``.

            playback = await player.play(token)
            async with player.play(token) as playback:  # closes and frees the playback at the end

        Playback.wait_session() waits for the session.

        Raises:
            InvalidHandleError, InvalidArgumentError, NoDelegateError, ClosedError.
        """
        started = self._play(content_token, delegate, content_id, clear, tag, payload, renewed)
        return Starting(started)

    async def _play(
        self,
        content_token: str | None,
        delegate: Delegate | None,
        content_id: bytes | str | None,
        clear: bool,
        tag: object,
        payload: PayloadCallback | None,
        renewed: RenewedCallback | None,
    ) -> Playback:
        for name, function in (("payload", payload), ("renewed", renewed)):
            if function is not None:
                _border.function(function, name)
        context, play = self.context, Play(self.context._loop, tag)
        used = play.delegate = context._delegate if delegate is None else delegate

        def ask(request: _playback.PayloadRequest) -> Any:
            return None if payload is None else context._ask("payload", payload, question_here(PayloadRequest, request))

        def pass_license(_: _playback.Playback, license: License) -> None:
            playback = play.playback()
            if playback is not None and renewed is not None:
                context._call("renewed", renewed, playback, license)

        inner = self._blocking.play(
            content_token,
            delegate=blocking_of(delegate),
            content_id=content_id,
            clear=clear,
            tag=play,
            payload=None if payload is None else ask,
            renewed=None if renewed is None else pass_license,
        )
        if used is None:
            play.has_session = False  # there is a resource loader, but no delegate
        else:
            play.has_session, play.teardown_ms = used._has_sessions and not clear, used._teardown_ms
        context._open.add(play)
        playback = self._playback = Playback(self, inner, play)
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
        """Prepares the item that play() will probably start next, as ``usher.Player.prepare`` does. Waits for nothing.

        Raises:
            InvalidHandleError, InvalidArgumentError, NoDelegateError, ClosedError.
        """
        play = Play(self.context._loop, tag)
        play.delegate = self.context._delegate if delegate is None else delegate
        self._blocking.prepare(
            content_token,
            delegate=blocking_of(delegate),
            content_id=content_id,
            clear=clear,
            tag=play,
            keep_ms=keep_ms,
        )

    def add_observer(self, observer: NoticeCallback) -> Observer:
        """Adds an observer, which gets one Notice for each thing that a viewer must know about the current item.

        The observer is a plain function or a coroutine function. Returns an object that can remove the observer.
        ``usher.Player.add_observer`` says more.
        """

        _border.function(observer, "observer")

        def tell(told: _event.Notice) -> None:
            play = told.tag if isinstance(told.tag, Play) else None
            values = {field.name: getattr(told, field.name) for field in dataclasses.fields(told)}
            tag, playback = (None, None) if play is None else (play.tag, play.playback())
            notice = Notice(**{**values, "playback": playback, "player": self, "tag": tag})
            self.context._call("observer", observer, notice)

        return self._blocking.add_observer(tell)

    def __repr__(self) -> str:
        playback = self._playback
        idle = playback is None or playback._play.closed.done()
        return _border.shown_object(self, "closed" if self._blocking._is_closed else "idle" if idle else repr(playback))

    async def stop(self, mode: CloseMode | int = CloseMode.DEFAULT) -> None:
        """Closes the current playback, and waits as Playback.close() does. Does nothing if there is no playback.

        Raises:
            InvalidHandleError, InvalidArgumentError.
        """
        self._blocking.stop(mode)
        if self._playback is not None:
            await self._playback._until_closed()

    async def close(self) -> None:
        """Closes the current playback, waits as Playback.close() does, and frees the player. A second call does
        nothing."""
        self._blocking.close()
        playback, self._playback = self._playback, None
        if playback is not None:
            await playback._until_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
