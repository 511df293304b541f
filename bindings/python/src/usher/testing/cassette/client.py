"""Plays a cassette back as a player: sends its requests to a head-end and compares the replies."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from .format import TOKEN_MEMBER, Cassette, Exchange
from .timing import differs

_PATHS = {"set-up": "setup", "heartbeat": "heartbeat", "teardown": "teardown"}
_TIMEOUT_S = 30


def replay(
    cassette: Cassette,
    ssm_url: str,
    content_token: Callable[[str], str],
    *,
    wait: Callable[[int], None] = lambda ms: time.sleep(ms / 1000),
    token_header: str = "nv-authorizations",
    ca_file: str | None = None,
    tolerance_ms: float | None = None,
) -> list[str]:
    """Sends the set-ups, heartbeats and teardowns of a cassette in their order. At the end it tears down the sessions
    that are still open. Returns the differences, each as one sentence.

    Args:
        cassette: the cassette.
        ssm_url: the SSM URL of the head-end.
        content_token: returns the content token for a name such as ``C1``.
        wait: a function that waits for some milliseconds; with a manual clock, the function moves the clock instead.
        token_header: the header that carries the tokens.
        ca_file: the certificate authority of the head-end; None: those of the system.
        tolerance_ms: by how much the time until a reply may differ from the time in the cassette. None: the function
            does not compare these times.

    Raises:
        OSError: there is no connection to the head-end.
    """
    player = _Player(ssm_url, token_header, ca_file)
    held: dict[str, str] = {}
    found: list[str] = []
    skipped: list[str] = []
    now_ms = 0
    try:
        for number, expected in enumerate(cassette.exchanges, start=1):
            wait(max(0, expected.at_ms - now_ms))
            now_ms = max(now_ms, expected.at_ms)
            if expected.operation not in _PATHS:
                skipped.append(f"{number} ({expected.operation})")
                continue
            tokens = [content_token(name) if name.startswith("C") else held.get(name, "") for name in expected.tokens]
            if not all(tokens):
                found.append(f"exchange {number} ({expected.operation}) was not sent: the server gave no such token")
                continue
            began = time.monotonic()
            status, members = player.send(_PATHS[expected.operation], ",".join(tokens))
            took_ms = (time.monotonic() - began) * 1000
            found += _compare(number, expected, status, members)
            if differs(took_ms, expected.took_ms, tolerance_ms):
                found.append(
                    f"exchange {number} ({expected.operation}): the reply took {took_ms:,.0f} ms; the cassette has "
                    f"{expected.took_ms:,} ms"
                )
            if expected.session_token is not None and members.get(TOKEN_MEMBER):
                session = expected.session_token.partition("#")[0]
                held = {name: token for name, token in held.items() if name.partition("#")[0] != session}
                held[expected.session_token] = str(members[TOKEN_MEMBER])
            elif expected.operation == "teardown" and expected.tokens:
                held.pop(expected.tokens[0], None)
    finally:
        for token in held.values():
            player.send("teardown", token)
    if skipped:
        found.append(f"these exchanges were not sent, because a cassette has no payloads: {', '.join(skipped)}")
    return found


class _Player:
    def __init__(self, ssm_url: str, token_header: str, ca_file: str | None) -> None:
        parts = urlsplit(ssm_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the SSM URL begins with http:// or https:// and has a host")
        base = parts.path.rstrip("/")
        self._path = f"{base if base.endswith('/v1') else base + '/v1'}/sessions"
        self._host, self._port = parts.hostname, parts.port
        self._header = token_header
        self._tls = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None

    def send(self, operation: str, tokens: str) -> tuple[int | None, dict[str, object]]:
        """Sends a request. Returns the status of the reply (None: no reply), and the members of a JSON reply, with
        their names in lower case."""
        connection = self._connection()
        connection.connect()
        try:
            headers = {self._header: tokens, "Content-Type": "application/json"}
            connection.request("POST", f"{self._path}/{operation}", body=b"{}", headers=headers)
            reply = connection.getresponse()
            value = json.loads(reply.read() or b"{}")
        except (OSError, http.client.HTTPException):
            return None, {}
        except ValueError:
            value = {}
        finally:
            connection.close()
        members = value if isinstance(value, dict) else {}
        return reply.status, {name.lower(): item for name, item in members.items()}

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=_TIMEOUT_S, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)


def _compare(number: int, expected: Exchange, status: int | None, members: dict[str, object]) -> list[str]:
    where = f"exchange {number} ({expected.operation})"
    if status != expected.status:
        return [f"{where}: the server replied {_reply(status, members)}; the cassette has {_words(expected)}"]
    found = []
    for name, value in expected.members.items():
        now = members.get(name.lower())
        if name.lower() == TOKEN_MEMBER:
            if not now:
                found.append(f"{where}: the reply has no session token; the cassette has one")
        elif now != value:
            found.append(f"{where}: {name} is {_shown(now)}; the cassette has {value}")
    if members.get(TOKEN_MEMBER) and expected.session_token is None:
        found.append(f"{where}: the reply has a session token; the cassette has none")
    return found


def _shown(value: object) -> str:
    return str(value) if isinstance(value, int | float) else ("missing" if value is None else "no number")


def _reply(status: int | None, members: dict[str, object]) -> str:
    code = members.get("errorcode", members.get("code"))
    words = "nothing" if status is None else str(status)
    return f"{words} with code {code}" if isinstance(code, int) else words


def _words(expected: Exchange) -> str:
    words = "no reply" if expected.status is None else str(expected.status)
    return words if expected.code is None else f"{words} with code {expected.code:g}"
