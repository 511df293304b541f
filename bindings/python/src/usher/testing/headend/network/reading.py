"""Reads requests with aiohttp. If a request is malformed, replies and log lines repeat no part of it, because it may
contain a token."""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

log = logging.getLogger("usher.testing.headend")


class _RequestHandler(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        log.warning("a request from %s cannot be read: %s", request.remote, type(exc).__name__)
        response = web.Response(status=status, text="the request cannot be read\n")
        response.force_close()
        return response


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _RequestHandler(self, loop=self._loop, **self._kwargs)


class Runner(web.AppRunner):
    """An ``AppRunner`` whose replies and log lines about malformed requests contain no part of these requests."""

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        server.__class__ = _Server
        return server
