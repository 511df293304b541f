"""A head-end with ten planted faults, written only to test ``usher check``. It shares no code with the reference
head-end, nor with the right server: it reads HTTP from the socket itself.

The line of each fault has a comment ``fault:`` with the name of the statement that the fault breaks. Standard library
only.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time

CONTENT_TOKEN = "content-token-of-the-wrong-server"
LIMIT = 2

FAULTS = frozenset(
    {
        "limit-together",
        "limit-code",
        "limit-others",
        "error-form",
        "setup-period",
        "heartbeat-next",
        "teardown",
        "teardown-ends",
        "no-token",
        "final",
    }
)
"""The names of the statements of ``usher check`` that the planted faults break."""


class WrongServer:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._sessions: dict[str, bool] = {}
        """For each session token whether the session takes a slot."""
        self._setups, self._arrived = 0, 0.0
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def __enter__(self) -> WrongServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        async with server:
            await self._stop.wait()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            await reader.readexactly(int(fields.get("content-length", "0")))
            status, value = await self._answer(head[0].split()[1], fields.get("nv-authorizations", ""))
            body = json.dumps(value).encode()
            writer.write(f"HTTP/1.1 {status} -\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def _answer(self, path: str, token: str) -> tuple[int, object]:
        call = path.rpartition("/")[2]
        if call == "setup":
            return await self._set_up(token)
        if not token:
            return 200, {}  # fault: no-token
        if token not in self._sessions:
            return 500, {"errorCode": 1006, "message": "no such session"}  # fault: final
        if call == "heartbeat":
            return 200, {"sessionToken": f"{token}+"}  # fault: heartbeat-next: the new token is not stored
        self._sessions[token] = False  # fault: teardown-ends: the token stays valid
        return 200, {"errorCode": 1003, "message": "cannot tear down"}  # fault: teardown

    async def _wait_for_others(self) -> None:
        """Waits for set-ups that come at the same time: all of them count the sessions before one adds its session."""
        self._setups += 1
        self._arrived = time.monotonic()
        await asyncio.sleep(0.03)
        while self._setups > 1 and time.monotonic() < self._arrived + 0.1:
            await asyncio.sleep(0.01)
        self._setups -= 1

    async def _set_up(self, token: str) -> tuple[int, object]:
        if token != CONTENT_TOKEN:
            return 403, "<h1>Forbidden</h1>"  # fault: error-form
        held = [session for session, takes_slot in self._sessions.items() if takes_slot]
        await self._wait_for_others()  # fault: limit-together: another set-up may come between the count and the insert
        if len(held) >= LIMIT:
            self._sessions.pop(held[0], None)  # fault: limit-others
            return 403, {"errorCode": 1010, "message": "too many"}  # fault: limit-code
        name = f"session-{next(self._numbers)}"
        self._sessions[name] = True
        return 200, {"sessionToken": name, "heartbeat": "30"}  # fault: setup-period
