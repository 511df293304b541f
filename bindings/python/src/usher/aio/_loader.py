"""Resource loaders whose SPC callback may be a coroutine function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .. import loader as _loader
from .._question import Reply
from ._requests import subject

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._context import Context
    from ._playback import Playback


class SPCRequest(_loader.SPCRequest):
    """As ``usher.SPCRequest``; `playback` is one of this module. Threads: any."""

    @property
    def playback(self) -> Playback | None:  # type: ignore[override]
        """The playback it is for; None when the object is gone."""
        return super().playback  # type: ignore[return-value]


SPCCallback = Callable[[SPCRequest], Reply[bytes] | Awaitable[bytes | None]]
"""``async def spc(request): return await make_spc(request.certificate, request.content_id)``, or a plain function as the blocking form takes it."""


class ResourceLoader:
    """As ``usher.ResourceLoader``. Freed with close() or a ``with`` block: neither waits.

    Attributes:
        context: whose playbacks it serves.
        blocking: the loader underneath.
    """

    def __init__(self, context: Context, spc: SPCCallback, **options: Unpack[_loader.LoaderOptions]) -> None:
        """Makes a loader and registers it. Arguments and errors as ``usher.ResourceLoader``; `spc` runs on the loop's thread."""
        self.context = context
        self.blocking = _loader.ResourceLoader(
            context.blocking, lambda request: context._ask("spc", spc, _request(request)), **options
        )

    def close(self) -> None:
        """Unregisters it. Loading requests under way go on. Again: does nothing."""
        self.blocking.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _request(asked: _loader.SPCRequest) -> SPCRequest:
    return SPCRequest(
        asked._completion,
        *subject(asked),
        asked._causes,
        certificate=asked.certificate,
        content_id=asked.content_id,
        url=asked.url,
    )
