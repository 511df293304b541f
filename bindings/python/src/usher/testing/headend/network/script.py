"""The fault script, which decides which request gets which fault."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ..config import AnyKeySystem, key_system_name
from ..listeners import Listeners
from ..oracle.journal import ROUTES, Entry
from .faults import Fault


@dataclass(eq=False)
class _Rule:
    route: str
    fault: Fault
    left: int | None
    account: str | None
    key_system: str | None
    where: Callable[[Entry], bool] | None

    def matches(self, entry: Entry) -> bool:
        return (
            self.route in ("*", entry.route)
            and (self.account is None or self.account == entry.account)
            and (self.key_system is None or self.key_system == entry.key_system)
            and (self.where is None or self.where(entry))
        )


@dataclass(frozen=True, slots=True)
class Scripted:
    """One line of the script: a fault that later requests will get.

    Attributes:
        route: the fault is for requests of this route; ``*``: of any route.
        label: the text of the fault.
        left: how many more requests get the fault; None: all.
        account: only requests of this account get the fault; None: of any account.
        key_system: only requests of this key system get the fault; None: of any.
    """

    route: str
    label: str
    left: int | None
    account: str | None
    key_system: str | None


@dataclass
class FaultScript:
    """The queued faults of each route. Any thread may call any method.

    Attributes:
        listeners: functions that are called with the number of lines when the script changes.
    """

    listeners: Listeners[int] = field(default_factory=Listeners, init=False, repr=False)
    _rules: list[_Rule] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(
        self,
        route: str,
        *faults: Fault,
        times: int = 1,
        always: bool = False,
        account: str | None = None,
        key_system: AnyKeySystem | str | None = None,
        where: Callable[[Entry], bool] | None = None,
    ) -> None:
        """Queues faults: the first matching request gets the first fault, the next request the second, and so on.

        Args:
            route: a route name of the journal, or ``*`` for any.
            times: how many requests get each fault.
            always: whether every matching request gets the fault, until ``clear``; queued faults apply first.
            account: only requests of this account get the fault.
            key_system: only requests of this key system get the fault.
            where: a function that gets the journal entry of a request; only requests for which it returns True get the
                fault. It runs on the server's thread.
        """
        if route != "*" and route not in ROUTES:
            raise ValueError(f"unknown route {route!r}; routes are *, {', '.join(ROUTES)}")
        if not faults:
            raise ValueError("no fault given")
        if times < 1:
            raise ValueError(f"times: {times} is less than one")
        name = None if key_system is None else key_system_name(key_system)
        rules = [_Rule(route, fault, None if always else times, account, name, where) for fault in faults]
        with self._lock:
            self._rules += rules
            self.listeners.tell(len(self._rules))

    def clear(self, route: str | None = None) -> None:
        """Removes the faults of one route, or of all routes."""
        with self._lock:
            self._rules = [rule for rule in self._rules if route is not None and rule.route != route]
            self.listeners.tell(len(self._rules))

    @property
    def pending(self) -> int:
        """How many queued faults are left, without ``always`` faults."""
        with self._lock:
            return sum(rule.left or 0 for rule in self._rules)

    def script(self) -> list[Scripted]:
        """The queued faults, in order."""
        with self._lock:
            return [Scripted(r.route, r.fault.label, r.left, r.account, r.key_system) for r in self._rules]

    def take(self, entry: Entry) -> Fault | None:
        """Returns the fault for this request and removes it from the queue, unless it is an ``always`` fault."""
        with self._lock:
            matching = [rule for rule in self._rules if rule.matches(entry)]
            rule = next((r for r in matching if r.left is not None), matching[0] if matching else None)
            if rule is None:
                return None
            if rule.left is not None:
                rule.left -= 1
                if rule.left == 0:
                    self._rules.remove(rule)
                self.listeners.tell(len(self._rules))
            return rule.fault
