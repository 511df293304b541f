"""The fault script, which decides which request gets which fault."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

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
        left: how many more requests get the fault; None: all (an ``always`` fault).
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
        seed: the seed of all random choices: jitter, sizes of slices, random bytes, toxicity. With the same seed, the
            same requests get the same faults.
        listeners: functions that the script calls with the number of its lines when it changes.
    """

    seed: int = 0
    listeners: Listeners[int] = field(default_factory=Listeners, init=False, repr=False)
    _rules: list[_Rule] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def add(
        self,
        route: str,
        *faults: Fault | Mapping[str, Any] | str,
        times: int = 1,
        always: bool = False,
        account: str | None = None,
        key_system: AnyKeySystem | str | None = None,
        where: Callable[[Entry], bool] | None = None,
    ) -> None:
        """Queues faults: the first matching request gets the first fault, the next request the second, and so on.

        Args:
            route: a route name of the journal, or ``*`` for any.
            faults: faults, or their JSON (``Fault.from_json``).
            times: how many requests get each fault.
            always: whether every matching request gets the fault, until ``clear``. Faults without ``always`` take
                precedence. If several ``always`` faults match, the request gets the oldest one.
            account: only requests of this account get the fault.
            key_system: only requests of this key system get the fault.
            where: a function that gets the journal entry of a request; only requests for which it returns True get the
                fault. It runs on the server's thread.
        """
        self._queue(_rules(route, faults, times, always, account, key_system, where))

    def load(self, script: Iterable[Mapping[str, Any]]) -> None:
        """Queues the faults of a script. Each line of the script is an object like the body of ``POST
        /_control/faults``: ``{"route": "heartbeat", "fault": {"kind": "status", "status": 503}, "times": 2}``. If a
        line is wrong, the method queues nothing.

        Raises:
            ValueError: a line is wrong; the message has its number.
        """
        rules: list[_Rule] = []
        for number, line in enumerate(script, start=1):
            try:
                rules += _read_line(line)
            except (TypeError, ValueError) as error:
                raise ValueError(f"line {number} of the fault script: {error}") from error
        self._queue(rules)

    def _queue(self, rules: list[_Rule]) -> None:
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
        """How many times a queued fault can still happen. Does not count ``always`` faults."""
        with self._lock:
            return sum(rule.left or 0 for rule in self._rules)

    def script(self) -> list[Scripted]:
        """The queued faults, in order."""
        with self._lock:
            return [Scripted(r.route, r.fault.label, r.left, r.account, r.key_system) for r in self._rules]

    def take(self, entry: Entry) -> Fault | None:
        """Returns the fault for this request, with its random choices made; None: the request gets no fault. After the
        last request that a fault is for, removes the fault from the queue."""
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
            return rule.fault.drawn(self._random)


_LINE = ("route", "fault", "times", "always", "account", "key_system")


def _read_line(line: Mapping[str, Any]) -> list[_Rule]:
    if not isinstance(line, Mapping):
        raise ValueError("not a JSON object")
    if unknown := set(line) - set(_LINE):
        raise ValueError(f"unknown member {', '.join(sorted(unknown))}; members are {', '.join(_LINE)}")
    for name in ("route", "fault"):
        if name not in line:
            raise ValueError(f"no {name}")
    fault = line["fault"]
    faults = fault if isinstance(fault, list) else [fault]
    options = {name: line[name] for name in ("account", "key_system") if name in line}
    return _rules(str(line["route"]), faults, line.get("times", 1), line.get("always", False), **options)


def _rules(
    route: str,
    faults: Iterable[Fault | Mapping[str, Any] | str],
    times: int,
    always: bool,
    account: str | None = None,
    key_system: AnyKeySystem | str | None = None,
    where: Callable[[Entry], bool] | None = None,
) -> list[_Rule]:
    if route != "*" and route not in ROUTES:
        raise ValueError(f"unknown route {route!r}; routes are *, {', '.join(ROUTES)}")
    made = [fault if isinstance(fault, Fault) else Fault.from_json(fault) for fault in faults]
    if not made:
        raise ValueError("no fault given")
    if times < 1:
        raise ValueError(f"times: {times} is less than one")
    name = None if key_system is None else key_system_name(key_system)
    return [_Rule(route, fault, None if always else times, account, name, where) for fault in made]
