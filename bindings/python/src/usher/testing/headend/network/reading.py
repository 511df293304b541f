"""Reads requests with aiohttp. If a request is malformed, replies and log lines repeat no part of it, because it may
contain a token."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

log = logging.getLogger("usher.testing.headend")

SHUTDOWN_S = 0.05
"""When the server stops, it waits for this time, in seconds, until the requests that it still handles have ended."""
_CANCELS = "handler_cancellation" in inspect.signature(web.Server.__init__).parameters
"""Whether this is aiohttp 3.9 or later. Before 3.9 (Debian 12 has such a version), aiohttp does not end the handler of
a request when the client disconnects. So the journal shows only after the reply that the client has gone."""
RUNNER_OPTIONS: dict[str, Any] = {"handler_cancellation": True, "shutdown_timeout": SHUTDOWN_S} if _CANCELS else {}
SITE_OPTIONS: dict[str, Any] = {} if _CANCELS else {"shutdown_timeout": SHUTDOWN_S}


class _RequestHandler(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, ConnectionError):  # the client has disconnected: no reply is possible; see the journal
            log.debug("the client %s left before the end of the reply", request.remote)
            raise exc
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        log.warning("a request from %s cannot be read: %s", request.remote, type(exc).__name__)
        response = web.Response(status=status, text="the request cannot be read\n")
        response.force_close()
        return response


class _Server(web.Server):
    on_connection: Callable[[], None]

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        self.on_connection()
        super().connection_made(handler, transport)

    def __call__(self) -> web.RequestHandler:
        return _RequestHandler(self, loop=self._loop, **self._kwargs)


class Runner(web.AppRunner):
    """An ``AppRunner`` whose replies and log lines about malformed requests contain no part of these requests.

    Args:
        on_connection: called for each connection that the server accepts.
    """

    def __init__(self, app: web.Application, on_connection: Callable[[], None], **options: Any) -> None:
        super().__init__(app, **options)
        self._on_connection = on_connection

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        server.__class__ = _Server
        assert isinstance(server, _Server)
        server.on_connection = self._on_connection
        return server
