"""The events and questions of usher.aio: their `playback` and `player` are objects of usher.aio."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import event as _event
from .. import playback as _playback
from .._c.enums import Hook, Status
from .._question import Answer, Question, Reply
from ..delegates import base as _delegate
from ..delegates import customer as _customer
from ..delegates import hooks as _hooks
from ..license import License
from ._play import Play

if TYPE_CHECKING:
    from ._playback import Playback
    from ._player import Player


Kind = TypeVar("Kind", bound=Question[Any])


class Event(_event.Event):
    """The ``usher.Event`` of usher.aio: its `playback` and `player` are objects of usher.aio."""

    __slots__ = ()
    playback: Playback | None  # type: ignore[assignment]  # no subclass of usher.Playback: its methods are awaited
    player: Player | None  # type: ignore[assignment]


@dataclasses.dataclass(frozen=True)
class Notice(_event.Notice):
    """The ``usher.Notice`` of usher.aio: its `playback` and `player` are objects of usher.aio."""

    playback: Playback | None  # type: ignore[assignment]
    player: Player | None  # type: ignore[assignment]


class Here:
    """The first base class of each question of usher.aio. With it `playback` is a ``usher.aio.Playback``."""

    @property
    def playback(self) -> Playback | None:
        """The playback of the question; None if Python has freed the object."""
        return super().playback  # type: ignore[misc,no-any-return]


class TokenRequest(Here, _delegate.TokenRequest):  # type: ignore[misc]
    """The ``usher.TokenRequest`` of usher.aio: its `playback` is a ``usher.aio.Playback``. Threads: any."""


class PayloadRequest(Here, _playback.PayloadRequest):  # type: ignore[misc]
    """The ``usher.PayloadRequest`` of usher.aio: its `playback` is a ``usher.aio.Playback``. Threads: any."""


class CustomerRequest(Here, _customer.CustomerRequest):  # type: ignore[misc]
    """The ``usher.CustomerRequest`` of usher.aio: its `playback` is a ``usher.aio.Playback``. Threads: any."""


class SessionCall(Here, _customer.SessionCall):  # type: ignore[misc]
    """The ``usher.SessionCall`` of usher.aio: its `playback` is a ``usher.aio.Playback``. Threads: any."""


class HookCall(Here, _hooks.HookCall[Answer], Generic[Answer]):  # type: ignore[misc]
    """The ``usher.HookCall`` of usher.aio: its `playback` is a ``usher.aio.Playback``, and builtin() is a coroutine
    function.

    Threads: any, except for builtin().
    """

    async def builtin(self) -> Answer:  # type: ignore[override]  # awaited here
        """Returns the value of the built-in behaviour. The step still needs an answer after that.

        If the call must wait for a certificate, a thread of the event loop's executor waits.

        Raises:
            UsherError: the built-in behaviour failed.
            InvalidCompletionError: the step has its answer, or its deadline is over.
        """
        if self.hook is Hook.CERTIFICATE:
            return await asyncio.get_running_loop().run_in_executor(None, super().builtin)
        return super().builtin()


def question_here(kind: type[Kind], asked: Question[Any]) -> Kind:
    """Makes an object of `kind`, the corresponding class of usher.aio, for a question of ``usher``.

    Its `playback` is the ``usher.aio.Playback`` of the question, and its `tag` is the tag that the host gave to play().
    """
    play = asked.tag
    found: Kind = asked._copy(kind, *((play.playback(), play.tag) if isinstance(play, Play) else (None, None)))
    return found


TokenCallback = Callable[[TokenRequest], Reply[str] | Awaitable[str | None]]
"""``async def token(request): return "token"``, or a plain function as in ``usher``."""
PayloadCallback = Callable[[PayloadRequest], Reply[bytes] | Awaitable[bytes | None]]
"""``async def payload(request): return challenge``, or a plain function as in ``usher``."""
RenewedCallback = Callable[["Playback", License], object]
"""``renewed(playback, license)``: a plain function or a coroutine function."""
CustomerCallback = Callable[
    [CustomerRequest], Reply[_customer.LicenseResponse] | Awaitable[_customer.LicenseResponse | None]
]
"""``async def license(request): return usher.LicenseResponse(…)``, or a plain function as in ``usher``."""
SessionCallback = (
    Callable[[SessionCall], Reply[Status] | Awaitable[Status | None]]
    | Callable[[], Reply[Status] | Awaitable[Status | None]]
)
"""``async def heartbeat(call): …`` or ``async def heartbeat(): …``, or a plain function as in ``usher``."""
EventCallback = Callable[[Event], object]
"""``observer(event)``: a plain function or a coroutine function."""
NoticeCallback = Callable[[Notice], object]
"""``observer(notice)``: a plain function or a coroutine function."""
