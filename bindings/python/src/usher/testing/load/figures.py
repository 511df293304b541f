"""The figures of a load test: times of the operations, what the playbacks cost, and the thresholds."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .settings import Settings

SETUP = "set-up"
REFUSED = "set-up, refused for the limit"
LICENSE = "licence"
HEARTBEAT = "heartbeat, ms late"
TEARDOWN = "teardown"
SCREEN = "screen"
"""The operation to which the figures count an exception that belongs to none of the operations above."""
_MILLION = 1_000_000


@dataclass(frozen=True)
class Cost:
    """What the playbacks of one process have cost.

    Attributes:
        cpu_s: processor time since the start of the test, seconds.
        resident: growth of the resident memory, bytes.
        held: sessions held.
        lost: sessions that failed after they had begun.
        requests: requests sent.
        retries: requests that were repeated.
    """

    cpu_s: float
    resident: int
    held: int
    lost: int
    requests: int
    retries: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def later(self, now: Cost) -> Cost:
        """Returns a copy of ``now``, but with ``resident`` and ``held`` of this object."""
        return replace(now, resident=self.resident, held=self.held)


reported: dict[Hashable, Cost] = {}
"""The newest cost of each process."""


def write(stats: Any, settings: Settings) -> None:
    """Writes the figures of the test as JSON into the file that the settings name."""
    operations = {
        entry.name: {
            "count": entry.num_requests,
            "failed": entry.num_failures,
            "p50_ms": entry.get_response_time_percentile(0.5) or 0,
            "p99_ms": entry.get_response_time_percentile(0.99) or 0,
            "most_ms": entry.max_response_time,
        }
        for entry in stats.entries.values()
    }
    errors = [
        {"operation": error.name, "error": str(error.error), "count": error.occurrences}
        for error in stats.errors.values()
    ]
    # Locust rounds times of 100 ms and more to two digits: 495 to 504 ms become 500 ms. Times that are rounded to the
    # limit count as late, so that no late heartbeat is missed.
    beats = next((entry for entry in stats.entries.values() if entry.name == HEARTBEAT), None)
    late = sum(count for ms, count in (beats.response_times if beats else {}).items() if ms >= settings.late_ms)
    value = {
        "operations": operations,
        "errors": errors,
        "late": late,
        "late_ms": settings.late_ms,
        "processes": [cost.as_dict() for cost in reported.values()],
    }
    Path(settings.result).write_text(json.dumps(value), encoding="utf-8")


def exceeded(value: dict[str, Any], settings: Settings) -> list[str]:
    """Returns the thresholds that the figures exceed, in words."""
    found = []
    failed = sum(error["count"] for error in value["errors"])
    if failed > settings.errors_most:
        found.append(f"{failed} errors, at most {settings.errors_most} are allowed")
    if value["late"] > settings.late_most:
        found.append(
            f"{value['late']} heartbeats more than {settings.late_ms} ms late, at most {settings.late_most} are allowed"
        )
    p99 = value["operations"].get(SETUP, {}).get("p99_ms", 0)
    if settings.setup_p99_ms and p99 > settings.setup_p99_ms:
        found.append(f"99 % of the set-ups within {p99:.0f} ms, the limit is {settings.setup_p99_ms} ms")
    if value["operations"].get(SETUP, {}).get("count", 0) == 0:
        found.append("no session was set up")
    return found


def million(value: dict[str, Any], period_s: float) -> dict[str, float]:
    """Returns what a million playbacks take on the clients' side, calculated from the cost of this test; empty if the
    test held no session.

    Args:
        value: the figures of a test.
        period_s: the period of the heartbeats, seconds.
    """
    costs = [Cost(**each) for each in value["processes"]]
    requests, held = sum(cost.requests for cost in costs), sum(cost.held for cost in costs)
    if not requests or not held:
        return {}
    cpu_us = 1e6 * sum(cost.cpu_s for cost in costs) / requests
    bytes_each = sum(cost.resident for cost in costs) / held
    rate = _MILLION / period_s
    return {
        "cpu_us_per_request": round(cpu_us, 1),
        "bytes_per_playback": round(bytes_each),
        "requests_per_s": round(rate),
        "cores": math.ceil(rate * cpu_us / 1e6),
        "memory_gb": round(_MILLION * bytes_each / 1e9, 1),
    }
