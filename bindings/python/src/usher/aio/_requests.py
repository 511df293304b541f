"""What is told and asked, with the playbacks of this package."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic

from .. import customer as _customer
from .. import delegate as _delegate
from .. import event as _event
from .. import hooks as _hooks
from .. import playback as _playback
from .._c.enums import Hook, Status
from .._question import Answer, Question, Reply
from ..license import License
from ._play import Play

if TYPE_CHECKING:
    from ._playback import Playback
    from ._player import Player


@dataclasses.dataclass(frozen=True)
class Event(_event.Event):
    """As ``usher.Event``; `playback` and `player` are those of this module."""

    playback: Playback | None  # type: ignore[assignment]  # not a kind of the blocking one: its methods are awaited
    player: Player | None  # type: ignore[assignment]


class TokenRequest(_delegate.TokenRequest):
    """As ``usher.TokenRequest``; `playback` is one of this module. Threads: any."""

    @property
    def playback(self) -> Playback | None:  # type: ignore[override]
        """The playback it is for; None when the object is gone."""
        return super().playback  # type: ignore[return-value]


class PayloadRequest(_playback.PayloadRequest):
    """As ``usher.PayloadRequest``; `playback` is one of this module. Threads: any."""

    @property
    def playback(self) -> Playback | None:  # type: ignore[override]
        """The playback it is for; None when the object is gone."""
        return super().playback  # type: ignore[return-value]


class CustomerRequest(_customer.CustomerRequest):
    """As ``usher.CustomerRequest``; `playback` is one of this module. Threads: any."""

    @property
    def playback(self) -> Playback | None:  # type: ignore[override]
        """The playback it is for; None when the object is gone."""
        return super().playback  # type: ignore[return-value]


class SessionCall(_customer.SessionCall):
    """As ``usher.SessionCall``; `playback` is one of this module. Threads: any."""

    @property
    def playback(self) -> Playback | None:  # type: ignore[override]
        """The playback it is for; None when the object is gone."""
        return super().playback  # type: ignore[return-value]


class HookCall(_hooks.HookCall[Answer], Generic[Answer]):
    """As ``usher.HookCall``; `playback` is one of this module, and builtin() is awaited. Threads: any, but for builtin()."""

    @property
    def playback(self) -> Playback | None:  # type: ignore[override]
        """The playback it is for; None when the object is gone."""
        return super().playback  # type: ignore[return-value]

    async def builtin(self) -> Answer:  # type: ignore[override]  # awaited here
        """What the built-in behaviour makes of it; the question stays open. A certificate is waited for on a thread of the loop's executor.

        Raises:
            The built-in behaviour's error; InvalidCompletionError when answered before, or too late.
        """
        if self.hook is Hook.CERTIFICATE:
            return await asyncio.get_running_loop().run_in_executor(None, super().builtin)
        return super().builtin()


def token_request(asked: _delegate.TokenRequest) -> TokenRequest:
    """`asked`, for hosts of this package."""
    return TokenRequest(asked._completion, *subject(asked), asked._causes)


def hook_call(asked: _hooks.HookCall[Any]) -> HookCall[Any]:
    """`asked`, for hosts of this package."""
    return HookCall(
        asked._completion,
        *subject(asked),
        asked._causes,
        hook=asked.hook,
        type=asked.type,
        key_system=asked.key_system,
        asset_id=asked.asset_id,
        data=asked.data,
        http_status=asked.http_status,
    )


def customer_question(asked: Question[Any]) -> Question[Any]:
    """`asked`, for hosts of this package."""
    if isinstance(asked, _customer.SessionCall):
        return SessionCall(asked._completion, *subject(asked), asked._causes, operation=asked.operation)
    assert isinstance(asked, _customer.CustomerRequest)
    return CustomerRequest(
        asked._completion,
        *subject(asked),
        asked._causes,
        key_system=asked.key_system,
        payload=asked.payload,
        type=asked.type,
        asset_id=asked.asset_id,
    )


def subject(request: Question[Any]) -> tuple[Any, object]:
    """The playback of this package that is asked for, and its tag."""
    play = request.tag
    return (play.playback(), play.tag) if isinstance(play, Play) else (None, None)


TokenCallback = Callable[[TokenRequest], Reply[str] | Awaitable[str | None]]
"""``async def token(request): return "token"``, or a plain function as the blocking form takes it."""
PayloadCallback = Callable[[PayloadRequest], Reply[bytes] | Awaitable[bytes | None]]
"""``async def payload(request): return challenge``, or a plain function as the blocking form takes it."""
RenewedCallback = Callable[["Playback", License], object]
"""``renewed(playback, license)``, plain or a coroutine function."""
CustomerCallback = Callable[
    [CustomerRequest], Reply[_customer.LicenseResponse] | Awaitable[_customer.LicenseResponse | None]
]
"""``async def license(request): return usher.LicenseResponse(…)``, or a plain function as the blocking form takes it."""
SessionCallback = Callable[[SessionCall], Reply[Status] | Awaitable[Status | None]]
"""``async def heartbeat(call): …``, or a plain function as the blocking form takes it."""
EventCallback = Callable[[Event], object]
"""``observer(event)``, plain or a coroutine function."""
