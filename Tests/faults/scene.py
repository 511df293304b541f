"""One playback with a fault, another playback that the fault must not disturb, and the head-end that both use."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from world import FAR, NAME, World

import usher
from stage import KID, Stage
from stage.closing import ClosingDoor
from stage.http2 import Http2Door
from usher.testing.doors import Door, Proxy
from usher.testing.headend import HeadEnd
from usher.testing.headend.fixtures import Authority

SUBJECT, OTHER = "subject", "other"
PERIOD_MS = 60_000

ROUTES = {
    "setup": "setup",
    "license": "license",
    "heartbeat": "heartbeat",
    "renewal": "license-renewal",
    "teardown": "teardown",
    "certificate": "certificate",
}
"""The name of each operation's route in the head-end's journal."""


class Trap:
    """A server to which redirects point; the library must never connect to it."""

    def __init__(self, host: str) -> None:
        self._socket = socket.create_server((host, 0))
        self._socket.setblocking(False)
        self.address = f"http://{host}:{self._socket.getsockname()[1]}/redirected"

    @property
    def visited(self) -> bool:
        """Whether a client has connected."""
        try:
            self._socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()


class Scene:
    """Plays two playbacks. One of them, the subject, has the fault.

    The subject's requests of the operation under test go through a door (a small server in front of the head-end, see
    docs/glossary.md). All its other requests go directly to the head-end. There are two exceptions: with a door that
    closes connections, all requests of the subject go through the door; over HTTP/2, if the head-end itself makes the
    fault, all requests of both playbacks go through one door, so that they share one connection.

    Args:
        operation: a key of ``ROUTES``.
        rotation: the head-end's token rotation.
        door: "" (no door), "plain" (http), "tls" or "closing" (http, can close connections); with a world also "named"
            (TLS, the address is a host name) or "far" (TLS, on the far side of the link).
        proxied: all requests go by TLS through a proxy.
        world: the network of this process, if the fault is one of network, name server or clock.
        http2: all doors speak HTTP/2.
        options: further options of the context.
    """

    def __init__(
        self,
        authority: Authority,
        operation: str,
        rotation: str,
        door: str = "",
        proxied: bool = False,
        world: World | None = None,
        http2: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.world = world
        self._host = {"named": NAME, "far": FAR}.get(door, "127.0.0.1")
        self._http2 = http2
        self._all_of_subject = door == "closing"
        self._all = http2 and door == ""
        self._hidden: Callable[[], int] | None = None
        self.authority = authority
        self.operation = operation
        self.route = ROUTES[operation]
        self._closing = contextlib.ExitStack()
        self.headend = HeadEnd(
            clock="manual",
            token_rotation=rotation,  # type: ignore[arg-type]
            period_s=PERIOD_MS // 1000,
            grace=60.0,
            limit=4,
            enforced=frozenset({"clearkey"} if operation == "renewal" else ()),
            token_form="mixed",
            control=False,
        ).start()
        self._closing.callback(self.headend.stop)
        self.traps = {"host": Trap("127.0.0.2"), "http": Trap("127.0.0.1")}
        for trap in self.traps.values():
            self._closing.callback(trap.close)
        self.proxy = self._closing.enter_context(Proxy()) if proxied else None
        self.door = self._make_door(door) if door or http2 else None
        self._main = self._make_door("tls") if proxied else None
        proxy = self.proxy.address if self.proxy is not None else ""
        # libcurl measures its time-out for connecting in real time. On a busy machine a short time-out could end
        # although no virtual time has passed, so this time-out is long.
        self.stage = Stage(
            self.headend,
            ca_file=str(authority.ca_file),
            proxy=proxy,
            connect_timeout_ms=120_000,
            http2=http2,
            **(options or {}),
        )
        self._closing.callback(self.stage.close)
        self.stage.step_ms = 1000
        for thing in (self.proxy, self.door, self._main):
            if thing is not None:
                self.stage.also_held.append(thing_held(thing))
                self.stage.also_catch_up.append(thing.catch_up)
        self.player = usher.Player(self.stage.context)
        self.delegate = self._make_delegate(is_subject=True)
        self.playback: usher.Playback | None = None
        self._other = self._play_other()

    def close(self) -> None:
        self._closing.close()

    # ---- requests, and the doors they use ----------------------------------------------------------------------------

    def _make_door(self, kind: str) -> Door:
        at = self.world.listen() if kind == "far" and self.world is not None else None
        if self._http2:
            return self._closing.enter_context(Http2Door(self.headend.url, tls=self.authority.server_context(), at=at))
        if kind == "closing":
            return self._closing.enter_context(ClosingDoor(self.headend.url))
        return self._closing.enter_context(
            Door(self.headend.url, tls=None if kind == "plain" else self.authority.server_context(), at=at)
        )

    def _address(self, operation: str, address: str, is_subject: bool) -> str:
        of_license = {"renewal": "license"}.get(self.operation, self.operation)
        is_under_test = is_subject and (operation == of_license or self._all_of_subject)
        if (is_under_test or self._all) and self.door is not None:
            return self.door.url(address, self._host)
        return self._main.url(address) if self._main is not None else address

    def _make_delegate(self, is_subject: bool) -> usher.SSPDelegate:
        headend = self.headend
        ssm = {
            f"{name}_url": self._address(name, f"{headend.ssm_url}/v1/sessions/{name}", is_subject)
            for name in ("setup", "heartbeat", "teardown")
        }
        return usher.SSPDelegate(
            self.stage.context,
            license_url=self._address("license", headend.license_url("clearkey"), is_subject),
            certificate_url=self._address("certificate", headend.certificate_url("fairplay"), is_subject),
            ssm_url=self._address("ssm", headend.ssm_url, is_subject),
            jitter_permille=usher.OFF,
            **ssm,
        )

    def play(self) -> None:
        """Starts the playback of the subject, and does not wait for its requests."""
        token = self.headend.content_token(SUBJECT)
        self.playback = self.player.play(
            token, delegate=self.delegate, tag=SUBJECT, payload=lambda request: usher.clear_key_request([KID])
        )

    def _play_other(self) -> usher.Playback:
        player = usher.Player(self.stage.context)
        playback = player.play(
            self.headend.content_token(OTHER), delegate=self._make_delegate(is_subject=False), tag=OTHER
        )
        self.stage.settle()
        return playback

    def request_license(self) -> Future[Any]:
        assert self.playback is not None
        return self.playback.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]))

    def lose(self) -> None:
        """Called if the network may lose one request: from now on the stage does not wait for this request."""
        self._hidden = lambda: min(1, self.stage.context.pending().transfers)
        self.stage.also_held.append(self._hidden)

    def find(self) -> None:
        """Ends lose(): from now on the stage waits for every request again."""
        assert self._hidden is not None
        self.stage.also_held.remove(self._hidden)

    # ---- checks ------------------------------------------------------------------------------------------------------

    def events(self, after: int = 0) -> list[usher.Event]:
        return self.stage.events.all(tag=SUBJECT)[after:]

    @property
    def account(self) -> str | None:
        """Returns the account that the operation's requests name; None for certificate requests, which carry no
        token."""
        return None if self.operation == "certificate" else SUBJECT

    def arrived(self) -> int:
        return self.headend.journal.count(self.route, account=self.account)

    def held(self) -> int:
        return len(self.headend.sessions.active(SUBJECT))

    def check_other(self) -> None:
        """Checks that the other playback got only KEPT_ALIVE events, one for each heartbeat, and that no heartbeat was
        late."""
        events = self.stage.events.all(tag=OTHER)
        due = self.stage.context.pending().now_ms // PERIOD_MS
        assert [e.type.name for e in events] == ["SESSION_STARTED"] + ["KEPT_ALIVE"] * due, self.headend.journal.dump()
        assert not any(e.lateness_ms for e in events)
        assert self.headend.journal.count("heartbeat", account=OTHER) == due

    def check_rules(self, breaks: tuple[str, ...] = ()) -> None:
        """Checks the rules that the library must follow with every fault.

        The library sends no stale token, sends no token after teardown, follows no redirect, and puts no token into a
        log line or error. No callback raises an exception. Only the heartbeats of the subject may be late.
        """
        self.headend.assert_clean(ignore=("late-beat", *breaks))
        assert not any(trap.visited for trap in self.traps.values()), "a redirect was followed"
        told = "\n".join(
            [
                *self.stage.logs,
                *self.stage.trace,
                *(f"{e.error} {e.error!r}" for e in self.stage.events.all() if e.error is not None),
            ]
        )
        sent = {part.raw for entry in self.headend.journal for part in entry.parts if len(part.raw) >= 8}
        assert "eyJ" not in told and not [token for token in sent if token in told], told
        assert not self.stage.callback_failures

    def finish(self) -> None:
        """Closes the other playback, and checks that its session ends within a second."""
        self.headend.release()
        self._other.close()
        self.stage.advance(1000)
        assert not self.headend.sessions.active(OTHER) or not self.headend.running


def thing_held(thing: Door) -> Callable[[], int]:
    return lambda: thing.held
