"""Makes docs/faults.md from the outcomes of the faults."""

# ruff: noqa: E501 - rows of tables

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from expected import OVER_HTTP2
from moves import CASES, COUNT, PERIOD_S, TIMEOUT_MS

from usher import EventType, Status

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"

HEAD = """# Faults

The events and errors that a host gets when servers or networks fail, for each [fault](glossary.md#fault) and each
operation. `make faults` writes this page; do not edit it. It causes every fault over real HTTP, and reads the outcome
from the events and from the [journal](glossary.md#journal) and [session table](glossary.md#session-table) of the
[reference head-end](headend.md). `make test` plays all cells except those that need network namespaces or a thousand
[playbacks](glossary.md#playback), and most of those over HTTP/2, and compares them with this page.

A cell shows, in this order: the events until the host closes the playback; the result of the close; the number of
requests of that operation that arrived at the [head-end](glossary.md#head-end), and the number of
[sessions](glossary.md#session) that it still holds at the end.

| word | means |
|---|---|
| `SETUP_ERROR TRANSPORT` | the event, and the `status` of its error without `USHER_E_`; a number after it is the `http_status` (no number: -1), `code` the service code |
| answer | the error of the certificate request, which has no events. For licences, the answer and the event have the same error |
| stop | `must_stop` is 1 |
| orphan | `orphan_possible` is 1: the head-end may hold a session whose token never reached the library |
| torn down, closed | the close gave `PLAYBACK_CLOSED` without an error. *Torn down*: the head-end tore the session down; *closed*: there was no session to tear down |
| held | the session keeps its [slot](glossary.md#slot) until it expires. The host can always see this from `orphan` or from `TEARDOWN_ERROR` |
| again | the error of a second request after the fault; in all other cells the second request succeeds |

For every cell the tests also check that the library sent the token under test to no other server (it did not follow
redirects), that no log line or error contains a token, that the library sent no stale token, and that the
[heartbeats](glossary.md#heartbeat) of another playback in the same context were on time, if the head-end was still
reachable.

All options have their defaults; the [period](glossary.md#period) is 60 s.

Two kinds of requests have no section. The requests of a resource [loader](glossary.md#loader)
([entitlement](glossary.md#entitlement), token URL, key) belong to no session, so a failed load only gives its error to
the player. With [SSP](glossary.md#ssp) V2 the first licence request opens the session; its errors are those of a
licence request, with `orphan_possible` as at [set-up](glossary.md#set-up). `Tests/stories` sends odd replies to these
requests too (`test_odd_replies.py`, `test_loader_wire.py`, `test_ssp_v2.py`).
"""

SECTIONS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    ("Set-up", "No automatic retry. The next item plays once the fault is over.", {"setup": "outcome"}),
    ("Licence", "No automatic retry. The library keeps the session alive during the fault.", {"license": "outcome"}),
    (
        "Heartbeat",
        """\
In the column "once", the fault affects only the first try of a heartbeat, and the head-end accepts the newest
[session token](glossary.md#session-token) and the one before it. In "once, strict", the head-end accepts only the
newest token. In "lasting", the fault affects every try for two periods.""",
        {"heartbeat": "once", "heartbeat strict": "once, strict", "heartbeat lasting": "lasting"},
    ),
    (
        "Renewal",
        """Licence [renewals](glossary.md#renewal) keep the session alive, with [payloads](glossary.md#payload) from the
payload callback. The columns are the same as for heartbeats.""",
        {"renewal": "once", "renewal strict": "once, strict", "renewal lasting": "lasting"},
    ),
    (
        "Teardown",
        "Once: the fault affects only the first try. Lasting: it affects all tries.",
        {"teardown": "once", "teardown lasting": "lasting"},
    ),
    (
        "Certificate",
        """The library gets the certificate once per [delegate](glossary.md#delegate); after a failure, the next
request tries again.""",
        {"certificate": "outcome"},
    ),
)
"""The sections of the page, each with its title, its introduction, and the table head for each column name."""

NAMES = sorted({*EventType.__members__, *Status.__members__}, key=len, reverse=True)


class Results:
    """The outcomes of this run."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], str] = {}

    def add(self, fault: str, column: str, outcome: str) -> None:
        self._cells[fault, column] = outcome

    def over(self, expected: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
        """Returns a copy of the expected table. In the cells that this run played, it has the outcomes of this run."""
        table = {fault: dict(row) for fault, row in expected.items()}
        for (fault, column), outcome in self._cells.items():
            table[fault][column] = outcome
        return table

    def missing(self, expected: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Returns the cells that this run did not play."""
        return [
            f"{fault}, {column}"
            for fault, row in expected.items()
            for column in row
            if (fault, column) not in self._cells
        ]


HTTP2 = """## HTTP/2

Every fault was also played over HTTP/2 (context option `http2`), except faults of chunks, which HTTP/2 does not have.
If the head-end makes the fault, both playbacks share one connection. Where the head-end would reset the connection, it
resets only the stream (RST_STREAM). Each outcome is the same as over HTTP/1.1, with these exceptions:

| fault | operation | HTTP/1.1 | HTTP/2 |
|---|---|---|---|
"""

MOVED = "moved"
"""The key of the results of moves.py."""

MOVES = f"""## Stopped and moved

The host, its machine or its network is stopped or moves, in real network namespaces and in real time; a host process
plays {COUNT} items with a [period](glossary.md#period) of {PERIOD_S:g} s. The time-out of a heartbeat is
{TIMEOUT_MS / 1000:g} s, longer than the [lease](glossary.md#lease) that the library assumes. So if the library waited
for a dead connection, the host would get `HEARTBEAT_ERROR`. If the address, the namespace, the route or the name server
changed, the host calls `usher_context_network_changed()`. A stop of the process and a sleep of the machine the library
notices by itself. An outcome has the events until the session is alive again, and the number of sessions that the
head-end then holds.

| what happens | outcome |
|---|---|
"""

CROWD = """## A thousand at once

A thousand playbacks of one context start the operation together. Each has one of the faults above, except those that
affect the whole head-end, the link, the clock or the context, and servers that close connections. Twenty other
playbacks have no fault; the test checks their heartbeats in the head-end's journal. *As each alone* means: each of the
thousand has the outcome of its cell above. *Beside them* gives the number of heartbeats of the twenty playbacks, and
the greatest lateness.

| operation | outcome |
|---|---|
"""


CHAOS = "\n## Chaos\n"
"""The title of the last section of the page, which `make chaos` writes."""


def render(table: Mapping[str, Mapping[str, str]], titles: Mapping[str, str], at_once: Mapping[str, str]) -> str:
    """Returns the page without its section about chaos. Neighbouring rows with the same cells become one row."""
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
    lines += [HTTP2 + "\n".join(http2_rows(table, titles)), ""]
    lines += [MOVES + "\n".join(f"| {case.title} | {_marked(table[MOVED][key])} |" for key, case in CASES.items()), ""]
    lines += [
        CROWD
        + "\n".join(
            f"| {name.replace(', silence', ', not one of them answered')} | {cell} |" for name, cell in at_once.items()
        )
    ]
    return "\n".join(lines).rstrip() + "\n"


def http2_rows(table: Mapping[str, Mapping[str, str]], titles: Mapping[str, str]) -> list[str]:
    """Returns a row for each cell whose outcome over HTTP/2 differs from the one over HTTP/1.1."""
    return [
        f"| {title} | {title_of(column)} | {_marked(table[fault][column])} | {_marked(cell)} |"
        for fault, title in titles.items()
        for column, cell in table.get(fault + OVER_HTTP2, {}).items()
        if cell != table[fault][column]
    ]


def title_of(column: str) -> str:
    """Returns the name of a column with the title of its section: "heartbeat, once, strict"."""
    operation = column.split(" ")[0]
    heads = next(columns for _, _, columns in SECTIONS if column in columns)
    return operation if heads[column] == "outcome" else f"{operation}, {heads[column]}"


def _marked(cell: str) -> str:
    """Puts the names of events and statuses in backquotes."""
    assert cell, "a cell is empty"
    return re.sub(rf"\b({'|'.join(NAMES)})\b", r"`\1`", cell)
