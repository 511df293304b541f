"""docs/faults.md, made from the outcomes of the faults."""

# ruff: noqa: E501 - rows of tables

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from usher import EventType, Status

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"

HEAD = """# Faults

What a host sees of each [fault](glossary.md#fault) of servers and networks, operation by operation. `make faults`
writes this page; do not edit it. It causes every fault over real HTTP, and reads the outcome from the events and from
the journal and session table of the [reference head-end](headend.md). `make test` plays all cells except those that
need network namespaces or a thousand playbacks, and compares them with this page.

How to read a cell: first the events, in order; then the events after the playback was closed; then how many requests
of that operation arrived at the head-end, and how many sessions it still holds at the end.

| word | means |
|---|---|
| `SETUP_ERROR TRANSPORT` | the event, and the `status` of its error without `USHER_E_`; a number after it is `http_status` (none: -1), `code` the service code |
| answer | the error of the answer, since certificates have no events. For licences, answer and event have the same error |
| stop | `must_stop` is 1 |
| orphan | `orphan_possible` is 1: the head-end may hold a session whose token never reached the library |
| torn down, closed | `SESSION_ENDED` and `PLAYBACK_CLOSED` without an error, and the head-end's table says torn down; or there was no session to tear down |
| held | the [slot](glossary.md#slot) is taken until it expires. The host always knows: from `orphan`, or from `TEARDOWN_ERROR` |
| again | a second request after the fault; if a cell does not name it, it succeeds |

For every cell the tests also check: the token under test went to no other server (no connection to a redirect's
target), no token is in a log line or error, no stale token was used, and the heartbeats of another playback in the
same context were on time, if its head-end could still be reached.

All options have their defaults; the period is 60 s.
"""

SECTIONS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    ("Set-up", "No automatic retry. The next item plays once the fault is over.", {"setup": "outcome"}),
    ("Licence", "No automatic retry. The session stays alive meanwhile.", {"license": "outcome"}),
    (
        "Heartbeat",
        """Once: only the first try of a heartbeat meets the fault; the head-end accepts the newest session token
and the one before it. Strict: it accepts only the newest. Lasting: every try meets the fault for two periods,
then it is over.""",
        {"heartbeat": "once", "heartbeat strict": "once, strict", "heartbeat lasting": "lasting"},
    ),
    (
        "Renewal",
        """Licence renewals keep the session alive, with payloads from the payload callback. Columns as above.""",
        {"renewal": "once", "renewal strict": "once, strict", "renewal lasting": "lasting"},
    ),
    (
        "Teardown",
        "Once: only the first try meets the fault. Lasting: all tries do.",
        {"teardown": "once", "teardown lasting": "lasting"},
    ),
    (
        "Certificate",
        "Fetched once per delegate; after a failure the next request tries again.",
        {"certificate": "outcome"},
    ),
)
"""Title, words, and the columns with their heads."""

NAMES = sorted({*EventType.__members__, *Status.__members__}, key=len, reverse=True)


class Results:
    """The outcomes of this run."""

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

A thousand playbacks of one context start the operation together. Each has one fault, all kinds in turn, except those
that affect the whole head-end, the link or the clock. Twenty others play at the same head-end; the test checks their
heartbeats in its journal. `as each alone`: every one of the thousand has the outcome of its cell above. *Beside
them*: how many heartbeats the twenty sent, and the greatest lateness.

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
