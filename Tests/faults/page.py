"""docs/faults.md: made of what came of the faults."""

# ruff: noqa: E501 - the page's own lines

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from usher import EventType, Status

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"

HEAD = """# Faults

What a host sees of each fault of servers and networks, operation by operation. Written by `make faults`, which brings every one of them about over real HTTP and judges by the
events, the reference head-end's journal and its session table; do not edit it. `make test` runs all of it but what needs network namespaces or a
thousand playbacks, and compares.

How to read a cell: what was told, in order; then what closing the playback told; then how many requests of that operation reached the head-end, and how many sessions it still
holds at the end.

| word | means |
|---|---|
| `SETUP_ERROR TRANSPORT` | the event, and the `status` of its error without `USHER_E_`; a number after it is `http_status` (none: -1), `code` the service code |
| answer | certificates have no events: the error of the answer. Of licences the answer and the event say the same |
| stop | `must_stop` is 1 |
| orphan | `orphan_possible` is 1: the head-end may hold a session whose token never reached the library |
| torn down, closed | `SESSION_ENDED` and `PLAYBACK_CLOSED` without an error, and the head-end's table says torn down; or nothing was to be torn down |
| held | the slot is taken until it expires. Always told: by `orphan`, or by `TEARDOWN_ERROR` |
| again | asking once more after the fault; where it is not named, it works |

Of every cell holds, besides: the token under test went nowhere else (a redirect's target was never connected to), no token is in a log line or error, no stale token was used, and the
heartbeats of another playback in the same context were on time, where the fault left it its head-end.

Defaults of the options; a period of 60 s.
"""

SECTIONS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    ("Set-up", "Not tried again by itself. The next item plays once the fault is over.", {"setup": "outcome"}),
    ("Licence", "Not tried again by itself. The session lives on meanwhile.", {"license": "outcome"}),
    (
        "Heartbeat",
        "Once: only the first try of a beat meets the fault; the head-end takes the newest session token and the one before it. Strict: it takes only the newest. Lasting: every try\n"
        "for two periods meets it, then it is over.",
        {"heartbeat": "once", "heartbeat strict": "once, strict", "heartbeat lasting": "lasting"},
    ),
    (
        "Renewal",
        "A session kept alive by licence renewals, their payloads from the payload callback; else as heartbeats.",
        {"renewal": "once", "renewal strict": "once, strict", "renewal lasting": "lasting"},
    ),
    (
        "Teardown",
        "Once: only the first try meets the fault. Lasting: all of them.",
        {"teardown": "once", "teardown lasting": "lasting"},
    ),
    ("Certificate", "Fetched once per delegate; a failure is not remembered.", {"certificate": "outcome"}),
)
"""Title, words, and the columns with their heads."""

NAMES = sorted({*EventType.__members__, *Status.__members__}, key=len, reverse=True)


class Results:
    """What came of the faults of this run."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], str] = {}

    def add(self, fault: str, column: str, outcome: str) -> None:
        self._cells[fault, column] = outcome

    def over(self, expected: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
        """The table with the cells of this run in it."""
        table = {fault: dict(row) for fault, row in expected.items()}
        for (fault, column), outcome in self._cells.items():
            table[fault][column] = outcome
        return table

    def missing(self, expected: Mapping[str, Mapping[str, str]]) -> list[str]:
        """The cells this run has not played."""
        return [
            f"{fault}, {column}"
            for fault, row in expected.items()
            for column in row
            if (fault, column) not in self._cells
        ]


CROWD = """## A thousand at once

A thousand playbacks of one context come to the operation together, each with the fault of its number, all kinds in turn (but those that take the whole head-end, the link or the clock).
Twenty others play beside them, at the same head-end; their beats are looked for in its journal.

| operation | outcome |
|---|---|
"""


def render(table: Mapping[str, Mapping[str, str]], titles: Mapping[str, str], at_once: Mapping[str, str]) -> str:
    """The page. Rows next to each other with the same cells are one."""
    lines = [HEAD]
    for title, words, columns in SECTIONS:
        lines += [
            f"## {title}",
            "",
            words,
            "",
            f"| fault | {' | '.join(columns.values())} |",
            "|---" * (len(columns) + 1) + "|",
        ]
        groups: list[tuple[list[str], tuple[str, ...]]] = []
        for fault in titles:
            cells = tuple(table[fault][column] for column in columns)
            if groups and groups[-1][1] == cells:
                groups[-1][0].append(titles[fault])
            else:
                groups.append(([titles[fault]], cells))
        lines += [
            f"| {'<br>'.join(names)} | {' | '.join(_marked(cell) for cell in cells)} |" for names, cells in groups
        ]
        lines.append("")
    lines += [
        CROWD
        + "\n".join(
            f"| {name.replace(', silence', ', not one of them answered')} | {cell} |" for name, cell in at_once.items()
        )
    ]
    return "\n".join(lines).rstrip() + "\n"


def _marked(cell: str) -> str:
    """Names of the interface in code."""
    assert cell, "a cell is empty"
    return re.sub(rf"\b({'|'.join(NAMES)})\b", r"`\1`", cell)
