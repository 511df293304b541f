"""A Hypothesis state machine for sessions: screens play, zap and stop, while time passes, the network fails and the
operator kills. It needs the package hypothesis.

    from pytest_usher.machine import SessionMachine

    class MyPlayer(SessionMachine):
        def make_host(self):
            return HostOfMyPlayer(self.headend)

    TestMyPlayer = MyPlayer.TestCase

Without ``make_host`` the machine tests the library itself.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from usher.testing.headend import HeadEnd

from .expect import table
from .stage import Stage
from .strategies import fault_lines, headend_settings

SCREENS = ("living room", "tablet", "phone")


class Host(Protocol):
    """The player under test: the methods that the state machine calls. Each method returns when the player has nothing
    left to do until time passes."""

    def play(self, screen: str, token: str) -> None:
        """Plays the next item on a screen. If an item plays there already, this is a zap."""

    def stop(self, screen: str) -> None:
        """Stops the item that the screen plays; does nothing if the screen plays no item."""

    def advance(self, ms: int) -> None:
        """Moves the clock of the player and of the head-end forward, by the same steps."""

    def close(self) -> None:
        """Stops all screens, and tears all sessions down."""


class LibraryHost:
    """libusher as the player: a ``Stage`` with one player for each screen."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def play(self, screen: str, token: str) -> None:
        """See ``Host``."""
        self.stage.play(token, screen=screen)
        self.stage.settle()

    def stop(self, screen: str) -> None:
        """See ``Host``."""
        self.stage.screen(screen).stop()
        self.stage.settle()

    def advance(self, ms: int) -> None:
        """See ``Host``."""
        self.stage.advance(ms)

    def close(self) -> None:
        """See ``Host``."""
        self.stage.close()


class SessionMachine(RuleBasedStateMachine):
    """Plays random stories and checks after each step that the player has broken no rule of the protocol, and that no
    account has more sessions than its limit. At the end, no session may be left. If the story had a fault, the machine
    first waits until leases have passed: a fault may have kept the newest token of a session from the player, so that
    the player could not tear it down.

    Attributes:
        ignore: kinds of violations that do not count (``HeadEnd.violations``).
        headend: the head-end of this story.
        host: the player under test.
    """

    ignore: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.headend: HeadEnd = HeadEnd(clock="manual")
        self.host: Host | None = None
        self._played: set[str] = set()
        self._faulty = False

    def make_host(self) -> Host:
        """Returns the player under test, which uses ``self.headend``. By default it is libusher."""
        return LibraryHost(Stage(self.headend))

    @initialize(settings=headend_settings())
    def start(self, settings: dict[str, Any]) -> None:
        """Starts the head-end and the player."""
        self.headend = HeadEnd(clock="manual", **settings).start()
        self.host = self.make_host()

    @rule(screen=st.sampled_from(SCREENS), account=st.sampled_from(["alice", "bob"]))
    def play(self, screen: str, account: str) -> None:
        """A viewer plays an item, or zaps."""
        self._host.play(screen, self.headend.content_token(account))
        self._played.add(screen)

    @precondition(lambda self: self._played)
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        """A viewer stops."""
        screen = data.draw(st.sampled_from(sorted(self._played)), label="screen")
        self._host.stop(screen)
        self._played.discard(screen)

    @precondition(lambda self: self._played)
    @rule(tenths=st.integers(1, 35))
    def wait(self, tenths: int) -> None:
        """Lets time pass: `tenths` tenths of a period."""
        self._host.advance(self.headend.config.period_ms * tenths // 10)

    @rule(line=fault_lines())
    def fault(self, line: dict[str, Any]) -> None:
        """Later requests of a route get a fault."""
        self._faulty = True
        self.headend.faults.load([line])

    @rule(account=st.sampled_from(["alice", "bob"]))
    def kill(self, account: str) -> None:
        """The operator kills the sessions of an account."""
        self.headend.kill_account(account)

    @invariant()
    def keeps_the_rules(self) -> None:
        """The player broke no rule."""
        if self.headend.running:
            self._check_rules()

    @invariant()
    def keeps_the_limit(self) -> None:
        """No account has more sessions than its limit."""
        for account in self.headend.sessions.accounts():
            if account.held > account.limit:
                raise AssertionError(f"{account.name} has {account.held} sessions, limit {account.limit}")

    def teardown(self) -> None:
        """Ends the story, and checks that no session is left."""
        if self.host is None:
            return
        try:
            self.headend.faults.clear()
            self.host.close()
            self._check_rules()
            if self._faulty:
                self.headend.advance(self.headend.config.lifetime_ms)
            left = self.headend.sessions.active()
            ids = {session.id for session in left}
            rows = {entry.number for entry in self.headend.journal if entry.session in ids}
            if left:
                raise AssertionError(f"the player has not given back {len(left)} sessions\n{table(self.headend, rows)}")
        finally:
            self.headend.stop()

    def _check_rules(self) -> None:
        # After a fault, a late keep-alive is no mistake of the player: its requests may not have reached the head-end.
        ignored = {*self.ignore, *(("late-beat",) if self._faulty else ())}
        found = self.headend.violations(ignore=ignored)
        if found:
            words = "; ".join(f"request {one.number}: {one.message}" for one in found)
            raise AssertionError(f"{words}\n{table(self.headend, {one.number for one in found})}")

    @property
    def _host(self) -> Host:
        assert self.host is not None
        return self.host


__all__ = ["SCREENS", "Host", "LibraryHost", "SessionMachine"]
