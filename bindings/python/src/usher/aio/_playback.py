"""Playbacks. Each of them is one item that plays on a player."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING

from .. import _border
from .. import playback as _playback
from .._c.enums import CloseMode, KeySystem, LicenseType, SessionState
from ..license import License
from ._play import Play, again, pass_on

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._player import Player


class Playback:
    """One item that plays on a player; Player.play() makes this object. The end of an ``async with`` block closes and
    frees it.

    Attributes:
        context, player: the context and the player on which it plays.
        tag: the `tag` given to Player.play().
    """

    def __init__(self, player: Player, blocking: _playback.Playback, play: Play) -> None:
        """Only Player.play() calls it."""
        self.context = player.context
        self.player = player
        self.tag = play.tag
        self._blocking = blocking
        self._play = play
        play.reference = weakref.ref(self)

    @property
    def session_state(self) -> SessionState:
        """The state of the playback's session. Raises InvalidHandleError."""
        return self._blocking.session_state

    async def wait_session(self) -> None:
        """Waits for the set-up of the session. Returns when the session is active, or if the playback needs no session.

        Raises:
            LimitError, RefusedError, HTTPStatusError, TransportError, TLSError, ProtocolError, TooLargeError,
            RedirectError, NoTokenError, ReplacedError, ClosedError: the set-up or, later, the session failed, or the
            playback was closed.
        """
        play = self._play
        if not play.closed.done():
            if not play.has_session:  # no event reports the end of the set-up
                return
            state = self.session_state
            if state is SessionState.PENDING or not play.is_set_up:
                waiter: asyncio.Future[None] = self.context._loop.create_future()
                play.waiters.add(waiter)
                try:
                    return await waiter
                finally:
                    play.waiters.discard(waiter)
            if state is SessionState.FAILED and play.failure is not None:
                raise again(play.failure)
        if play.error is not None:
            raise again(play.error)

    async def get_license(
        self,
        key_system: KeySystem | str,
        payload: bytes,
        *,
        type: LicenseType | int = LicenseType.REQUEST,
        asset_id: bytes | str | None = None,
        timeout_ms: int = 0,
    ) -> License:
        """Asks for a licence, waits for it, and returns it. Arguments and errors are those of
        ``usher.Playback.get_license``."""
        answer: asyncio.Future[License] = self.context._loop.create_future()
        self._blocking.request_license(
            key_system,
            payload,
            type=type,
            asset_id=asset_id,
            timeout_ms=timeout_ms,
            callback=lambda done: pass_on(done, answer),
        )
        return await answer

    async def get_certificate(self) -> bytes:
        """Returns the certificate of the delegate: the bytes that the server sent, which are DER.

        The delegate downloads the certificate once, and then keeps it in memory.

        Raises:
            StateError: the delegate has no certificate URL (customer SSM: no `certificate`).
            UsherError: the library did not get the certificate; a subclass gives the reason.
            InvalidHandleError, ClosedError.
        """
        answer: asyncio.Future[bytes] = self.context._loop.create_future()
        self._blocking.request_certificate(lambda done: pass_on(done, answer))
        return await answer

    async def get_content_id(self, url: str | bytes) -> bytes:
        """Returns the content identifier that the delegate finds in a `skd:` URL or asset ID.

        Arguments and errors are those of ``usher.Playback.get_content_id``.
        """
        answer: asyncio.Future[bytes] = self.context._loop.create_future()
        self._blocking.request_content_id(url, lambda done: pass_on(done, answer))
        return await answer

    async def get_resource(self, url: str | bytes, timeout_ms: int = 0) -> bytes:
        """Loads the resource of a URL, and returns its bytes. Arguments and errors are those of
        ``usher.Playback.get_resource``.

        If you cancel this call, the library cancels the request.
        """
        answer: asyncio.Future[bytes] = self.context._loop.create_future()
        request = self._blocking.load_resource(url, timeout_ms=timeout_ms, callback=lambda done: pass_on(done, answer))
        try:
            return await answer
        finally:
            request.cancel()

    def set_content_token(self, token: str) -> None:
        """Gives the content token to a playback that was started without one, as ``usher.Playback.set_content_token``
        does.

        Raises StateError, InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        self._blocking.set_content_token(token)

    def suspend(self) -> None:
        """Like ``usher.Playback.suspend``. Raises InvalidHandleError."""
        self._blocking.suspend()

    def resume(self) -> None:
        """Like ``usher.Playback.resume``. Raises InvalidHandleError."""
        self._blocking.resume()

    async def close(self, mode: CloseMode | int = CloseMode.DEFAULT) -> None:
        """Closes the playback and waits for PLAYBACK_CLOSED, at most the delegate's `teardown_timeout_ms` of real time.

        If this time passes, or you cancel the wait, the close continues in the background.

        Raises:
            InvalidArgumentError: `mode` is not a ``CloseMode``.
        """
        self._blocking.close(mode)
        await self._until_closed()

    async def _until_closed(self) -> None:
        await self.context._wait_closed([self._play.closed], self._play.teardown_ms / 1000)

    async def wait_closed(self) -> None:
        """Waits without limit until the playback is closed; does not close it."""
        await asyncio.shield(self._play.closed)

    def free(self) -> None:
        """Frees the handle. Closes the playback if it is open, without waiting. A second call does nothing."""
        self._blocking.free()

    def __repr__(self) -> str:
        blocking = self._blocking
        facts = ["closed"] if blocking._is_closed else [_border.shown_tag(self.tag), blocking._session_words()]
        return _border.shown_object(self, *facts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        try:
            await self.close()
        finally:
            self.free()
