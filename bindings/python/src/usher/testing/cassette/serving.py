"""A server of aiohttp on 127.0.0.1 that runs on a thread of its own."""

from __future__ import annotations

from typing import TypeVar

from aiohttp import web

from ..doors import Loop

S = TypeVar("S", bound="LocalServer")


class LocalServer:
    """A server that ``with`` starts and stops. A subclass implements `_answer`, which runs on the server's thread.

    Args:
        thread: the name of the server's thread.
        port: the port on 127.0.0.1; 0: a free one.
        max_body: the largest body that a request may have, in bytes.
    """

    def __init__(self, thread: str, port: int, max_body: int) -> None:
        self._port = port
        self._thread, self._max_body = thread, max_body
        self._work: Loop | None = None
        self._runner: web.AppRunner | None = None

    def __enter__(self: S) -> S:
        self._work = Loop(self._thread)
        try:
            self._work.call(self._open())
        except BaseException:
            self._work.stop()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._work is not None
        self._work.call(self._close())
        self._work.stop()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        raise NotImplementedError

    async def _open(self) -> None:
        app = web.Application(client_max_size=self._max_body)
        app.router.add_route("*", "/{anything:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = int(self._runner.addresses[0][1])

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
