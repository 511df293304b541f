"""Reads the live feed of a reference head-end. The web page of the head-end reads the same feed."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ..exits import CommandError, Exit

MOST_REQUESTS = 100
_SILENCE_S = 25.0
"""The head-end sends something at least every 10 s. If it sends nothing for this time, the feed assumes that it is
gone."""


class Gone(Exception):
    """The head-end does not answer, or has stopped. The text says which."""


def _only_account(value: dict[str, Any], account: str) -> dict[str, Any]:
    """Returns an event of the feed without the accounts, sessions and requests of other accounts."""
    names = {"accounts": "name", "sessions": "account", "requests": "account"}
    kept = {key: [row for row in value[key] if row[name] == account] for key, name in names.items() if key in value}
    return {**value, **kept}


@dataclass
class State:
    """What the head-end has said so far.

    Attributes:
        facts: the settings of the head-end: ``limit``, ``period_ms``, ``lifetime_ms`` and others.
        offset_ms: the head-end's time minus this machine's, in ms; None if its clock is manual.
        stopped: why the feed has ended; "" while it runs.
    """

    facts: dict[str, Any] = field(default_factory=dict, repr=False)
    accounts: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    requests: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False)
    faults: list[dict[str, Any]] = field(default_factory=list, repr=False)
    totals: dict[str, int] = field(default_factory=dict, repr=False)
    held: list[int] = field(default_factory=list)
    at_ms: int = 0
    offset_ms: float | None = None
    stopped: str = field(default="", repr=False)

    def now_ms(self) -> float:
        """The time on the head-end's clock."""
        return self.at_ms if self.offset_ms is None else time.time() * 1000 + self.offset_ms

    def take(self, name: str, value: dict[str, Any]) -> None:
        """Takes an event of the feed."""
        if name == "snapshot":
            self.facts = {**value["head_end"], "clock": value["clock"]}
            self.accounts, self.sessions, self.requests = {}, {}, {}
        self.at_ms = value.get("now_ms", self.at_ms)
        self.offset_ms = None if self.facts.get("clock") == "manual" else self.at_ms - time.time() * 1000
        self.totals = value.get("totals", self.totals)
        self.accounts |= {row["name"]: row for row in value.get("accounts", [])}
        self.sessions |= {row["id"]: row for row in value.get("sessions", [])}
        self.requests |= {row["number"]: row for row in value.get("requests", [])}
        for number in sorted(self.requests)[:-MOST_REQUESTS]:
            del self.requests[number]
        self.faults = value.get("faults", self.faults)
        self.held = value.get("held", self.held)
        self.stopped = "the head-end has stopped" if name == "stopped" else ""


class Feed:
    """The feed of a head-end.

    Args:
        url: the URL of its page or of its control endpoints.
        token: the control token; None if it needs none.
        account: the only account whose rows the events have; None: the events have the rows of all accounts.
        limit_s: the time limit of the connection.
    """

    def __init__(self, url: str, token: str | None, account: str | None = None, limit_s: float = 5.0) -> None:
        self._parts = urlsplit(url)
        self._token = token
        self._account = account
        self._limit_s = limit_s

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the name and the value of each event, until the head-end stops.

        Raises:
            Gone: no connection, or the connection has ended.
            CommandError: the server is no reference head-end, or wants a control token.
        """
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        try:
            connection = kind(self._parts.hostname or "", self._parts.port, timeout=self._limit_s)
        except (ValueError, http.client.InvalidURL) as error:
            raise CommandError(f"this is no URL: {error}") from error
        try:
            headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
            connection.request("GET", "/_control/events", headers=headers)
            reply = connection.getresponse()
            self._check(reply)
            if connection.sock is not None:
                connection.sock.settimeout(_SILENCE_S)
            yield from self._read(reply)
        except (OSError, http.client.HTTPException) as error:
            raise Gone(str(error) or type(error).__name__) from error
        finally:
            connection.close()

    def _check(self, reply: http.client.HTTPResponse) -> None:
        if reply.status == 401:
            raise CommandError("the head-end wants its control token: --control-token, or USHER_CONTROL_TOKEN")
        if reply.status == 403:
            raise CommandError("the head-end refuses this name: use its address, or start it with --host-name")
        if reply.status != 200 or "text/event-stream" not in (reply.getheader("Content-Type") or ""):
            raise CommandError(
                f"the server is no reference head-end: /_control/events has HTTP {reply.status}", Exit.UNREACHABLE
            )

    def _read(self, reply: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
        name = ""
        while line := reply.readline():
            text = line.decode("utf-8", "replace").rstrip("\n")
            key, _, rest = text.partition(": ")
            if key == "event":
                name = rest
            elif key == "data":
                try:
                    value = json.loads(rest)
                except ValueError as error:
                    raise CommandError("the server is no reference head-end: its events are not JSON") from error
                yield name, value if self._account is None else _only_account(value, self._account)
                if name == "stopped":
                    return
        raise Gone("the head-end has closed the connection")
