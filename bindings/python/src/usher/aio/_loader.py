"""Resource loaders whose SPC callback may be a coroutine function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .. import _border
from .. import loader as _loader
from .._options import LoaderOptions
from .._question import Reply
from ._context import Context
from ._requests import Here, question_here

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class SPCRequest(Here, _loader.SPCRequest):  # type: ignore[misc]
    """The ``usher.SPCRequest`` of usher.aio: its `playback` is a ``usher.aio.Playback``. Threads: any."""


SPCCallback = Callable[[SPCRequest], Reply[bytes] | Awaitable[bytes | None]]
"""``async def spc(request): return await make_spc(request.certificate, request.content_id)``, or a plain function of
the form that ``usher.ResourceLoader`` takes."""


class ResourceLoader:
    """The ``usher.ResourceLoader`` for asyncio. close(), or the end of a ``with`` block, frees it without waiting.

    Attributes:
        context: the context whose playbacks use the loader.
        blocking: the ``usher.ResourceLoader`` underneath.
    """

    def __init__(self, context: Context, spc: SPCCallback, **options: Unpack[LoaderOptions]) -> None:
        """Makes a loader and registers it.

        Arguments and errors are those of ``usher.ResourceLoader``; `spc` runs on the thread of the event loop.
        """
        self.context = _border.instance(context, Context, "context")
        _border.function(spc, "spc")
        self.blocking = _loader.ResourceLoader(
            context.blocking, lambda request: context._ask("spc", spc, question_here(SPCRequest, request)), **options
        )

    def close(self) -> None:
        """Unregisters the loader and frees it. Running requests continue. A second call does nothing."""
        self.blocking.close()

    def __repr__(self) -> str:
        return _border.shown_object(
            self, f"scheme {self.blocking.scheme}", "closed" if self.blocking._is_closed else ""
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
