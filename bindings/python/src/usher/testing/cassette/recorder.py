"""A proxy that passes requests on to a head-end, and records what passes."""

from __future__ import annotations

import asyncio
import ssl
import time
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

from .format import Cassette, Exchange
from .naming import TokenNames, exchange, operation_of
from .serving import LocalServer

_OF_ONE_CONNECTION = frozenset(
    {"connection", "content-encoding", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"}
)
_MAX_BODY = 16 * 1024 * 1024


class Recorder(LocalServer):
    """A recording proxy; ``with Recorder(url) as recorder`` starts and stops it.

    Args:
        target: a URL of the head-end; the proxy forwards to its scheme, host and port.
        token_header: the header that carries the tokens.
        port: the port on 127.0.0.1; 0: a free one.
        ca_file: the certificate authority of the head-end; None: those of the system.
    """

    def __init__(
        self, target: str, *, token_header: str = "nv-authorizations", port: int = 0, ca_file: str | None = None
    ) -> None:
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("the URL of the head-end begins with http:// or https:// and has a host")
        self._target, self._header = f"{parts.scheme}://{parts.netloc}", token_header
        self._tls = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
        super().__init__("usher-recorder", port, _MAX_BODY)
        self._names = TokenNames()
        self._exchanges: dict[int, Exchange] = {}
        self._count = 0
        self._start = time.monotonic()
        self._client: aiohttp.ClientSession | None = None

    def url(self, address: str) -> str:
        """Returns an address of the head-end with the proxy's host and port. A player uses it instead of the head-end's
        address."""
        return urlsplit(address)._replace(scheme="http", netloc=f"127.0.0.1:{self._port}").geturl()

    def cassette(self) -> Cassette:
        """Returns what has been recorded."""
        return Cassette(tuple(self._exchanges[number] for number in sorted(self._exchanges)))

    async def _open(self) -> None:
        self._client = aiohttp.ClientSession(auto_decompress=True, cookie_jar=aiohttp.DummyCookieJar())
        await super()._open()

    async def _close(self) -> None:
        await super()._close()
        if self._client is not None:
            await self._client.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        assert self._client is not None
        self._count += 1
        number, began = self._count, time.monotonic()
        operation = operation_of(request.path, request.query)
        tokens = self._names.sent(operation, ",".join(request.headers.getall(self._header, [])))
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _OF_ONE_CONNECTION]
        status, data, retry_after, kept = None, b"", None, []
        try:
            async with self._client.request(
                request.method,
                self._target + request.raw_path,
                headers=headers,
                data=await request.read(),
                allow_redirects=False,
                ssl=self._tls if self._tls is not None else True,
            ) as reply:
                data, status = await reply.read(), reply.status
                retry_after = reply.headers.get("Retry-After")
                kept = [(n, v) for n, v in reply.headers.items() if n.lower() not in _OF_ONE_CONNECTION]
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
            status = None
        self._exchanges[number] = exchange(
            self._names,
            at_ms=round((began - self._start) * 1000),
            operation=operation,
            tokens=tokens,
            took_ms=round((time.monotonic() - began) * 1000),
            status=status,
            body=data if status is not None else b"",
            retry_after=retry_after,
        )
        if status is None:
            if request.transport is not None:
                request.transport.close()
            return web.Response(status=502)
        return web.Response(status=status, body=data, headers=kept)
