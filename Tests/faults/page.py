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

This page shows which events and errors a host gets when servers or networks fail, for each [fault](glossary.md#fault)
and each operation. `make faults` writes this page; do not edit it. `make faults` causes every fault over real HTTP. It
takes the outcome from the host's events, and from the [journal](glossary.md#journal) and the
[session table](glossary.md#session-table) of the [reference head-end](headend.md).

`make test` plays a part of the cells, and compares the outcomes with this page. Over HTTP/1.1 it plays all cells except
those that need network namespaces or a thousand [playbacks](glossary.md#playback). Over HTTP/2 it plays one operation
for each fault, except for the faults that need network namespaces.

A cell shows, in this order: the events until the host closes the playback; the result of the close; the number of
requests of this operation that arrived at the [head-end](glossary.md#head-end), and the number of
[sessions](glossary.md#session) that the head-end still holds at the end.

| word | means |
|---|---|
| `SETUP_ERROR TRANSPORT` | the event without `USHER_EVENT_`, and the `status` of its error without `USHER_E_`. A number after the status is the `http_status`; without a number the `http_status` is -1. The number after `code` is the service code |
| x3 | the host got this event three times in a row |
| from LOCAL in RENEWAL | the origin and the operation of the error, if they are not those of the section |
| answer | the error with which the certificate request ends; certificate requests have no events. A licence request ends with the same error as its event has, so the cell shows only the event |
| stop | `must_stop` is 1 |
| orphan | `orphan_possible` is 1: the head-end may hold a session whose token never reached the library |
| torn down, closed | the close gave `PLAYBACK_CLOSED` without an error. *Torn down*: the head-end tore the session down; *closed*: there was no session to tear down |
| held | the head-end still holds the session, which keeps its [slot](glossary.md#slot) until it expires. In each of these cells `orphan` or `TEARDOWN_ERROR` tells the host |
| again | the error of a second request after the fault. In the other cells of set-up, licence and certificate the second request succeeds |

For every cell the tests also check four things. The library followed no redirect, so no other server got the token. No
log line and no error contains a token. The library sent no stale token. If the fault affects only one playback, the
[heartbeats](glossary.md#heartbeat) of another playback in the same context were on time.

All options for time limits and retries have their defaults, with two exceptions:
[keep-alives](glossary.md#keep-alive) have no [jitter](glossary.md#jitter), and the time limit for connecting is 120 s.
The [period](glossary.md#period) is 60 s. The head-end holds a session without keep-alives for 60 periods.

Two kinds of requests have no section. The requests of a resource [loader](glossary.md#loader) (to an
[entitlement](glossary.md#entitlement) server, a token URL or a key server) belong to no session, so if a load fails,
only the player gets its error. With [SSP](glossary.md#ssp) V2 the first licence request opens the session. Its errors
are those of a licence request, but `orphan_possible` is set as at [set-up](glossary.md#set-up). `Tests/stories` sends
odd replies to these requests too (`test_odd_replies.py`, `test_loader_wire.py`, `test_ssp_v2.py`).
"""

SECTIONS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    (
        "Set-up",
        "The library does not retry a set-up by itself. When the fault is over, the host can play the next item.",
        {"setup": "outcome"},
    ),
    (
        "Licence",
        """\
The library does not retry a licence request by itself, with two exceptions ([protocol.md](protocol.md#when-it-fails)).
During the fault, it keeps the session alive.""",
        {"license": "outcome"},
    ),
    (
        "Heartbeat",
        """\
In the column "once", the fault affects only the first try of a heartbeat, and the head-end accepts the newest
[session token](glossary.md#session-token) and the one before it. In "once, strict", the fault also affects only the
first try, but the head-end accepts only the newest token. In "lasting", the fault affects every try for two periods,
and the head-end does not change the token.""",
        {"heartbeat": "once", "heartbeat strict": "once, strict", "heartbeat lasting": "lasting"},
    ),
    (
        "Renewal",
        """\
Licence [renewals](glossary.md#renewal) keep the session alive. For each renewal, the library gets a
[payload](glossary.md#payload) from the payload callback of the host. The columns are the same as for heartbeats.""",
        {"renewal": "once", "renewal strict": "once, strict", "renewal lasting": "lasting"},
    ),
    (
        "Teardown",
        """\
In the column "once", the fault affects only the first try of a [teardown](glossary.md#teardown). In "lasting", it
affects all tries.""",
        {"teardown": "once", "teardown lasting": "lasting"},
    ),
    (
        "Certificate",
        """\
The library requests the certificate once for each [delegate](glossary.md#delegate), and keeps it. If the request fails,
the library requests the certificate again when the host next needs it.""",
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

`make faults` also plays every fault over HTTP/2 (context option `http2`). It leaves out the faults of chunked encoding,
which HTTP/2 does not have, and one cell whose number of requests varies: "request read, then no reply" during a
heartbeat, lasting. If the head-end makes the fault, the playback with the fault and the other playback share one
connection. Instead of the connection, the server then resets only the stream (RST_STREAM). Each outcome is the same as
over HTTP/1.1, with these exceptions:

| fault | operation | HTTP/1.1 | HTTP/2 |
|---|---|---|---|
"""

MOVED = "moved"
"""The key of the results of moves.py."""

MOVES = f"""## Stopped and moved

These rows show what happens if the host or its machine stops, or if its network changes. The tests use real network
namespaces and real time. A host process plays {COUNT} items with a [period](glossary.md#period) of {PERIOD_S:g} s. The
time-out of a heartbeat is {TIMEOUT_MS / 1000:g} s, which is longer than the [lease](glossary.md#lease) that the library
assumes. So if the library waited for a dead connection, the host would get `HEARTBEAT_ERROR`.

If the address, the namespace, the route or the name server changes, the host calls `usher_context_network_changed()`.
If the process stops or the machine sleeps, the library notices this by itself. An outcome shows the events until every
session is alive again, and how many sessions the head-end then holds (*kept*). If the host is killed, the outcome shows
how many sessions the head-end still holds some time later (*held*).

| what happens | outcome |
|---|---|
"""

CROWD = """## A thousand at once

A thousand playbacks of one context start the operation together. Each of them has one of the faults of this page. The
tests leave out the faults that affect the whole head-end or the context, those that need network namespaces, and
servers that close connections. Twenty other playbacks have no fault; the test checks their heartbeats in the head-end's
journal.

*As each alone* means: each of the thousand playbacks has the same events, the same result of the close and the same
number of held sessions as in its cell above. *Beats beside them* are the heartbeats of the twenty playbacks; the row
gives their number, and by how much the latest one was late. In the rows with *not one of them answered*, all thousand
playbacks have the fault "request read, then no reply".

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
    """Returns the text of a cell with backquotes around the names of events and statuses."""
    assert cell, "a cell is empty"
    return re.sub(rf"\b({'|'.join(NAMES)})\b", r"`\1`", cell)
