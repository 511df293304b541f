"""Makes docs/hosts.md from the results of the tests in this folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hosts.md"

HEAD = """# Hosts

This page lists what existing players do with the plug-ins and programs in [hosts](../hosts). `make hosts` writes this
page; do not edit it. It runs each player without a screen against the [reference head-end](headend.md). Each row is the
result of a test in [Tests/hosts](../Tests/hosts). The tests compare the decoded pictures with those of the clear clip,
read what the player tells the viewer, or read the [sessions](glossary.md#session) from the
[head-end](glossary.md#head-end)'s [journal](glossary.md#journal) and [session table](glossary.md#session-table); most
tests do several of these.

For a first encrypted picture with one of these players, see the page about [mpv](hosts/mpv.md),
[ffmpeg](hosts/ffmpeg.md), [VLC](hosts/vlc.md), [Chromium](hosts/chromium.md) or [GStreamer](hosts/gstreamer.md).
"""


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        title: the heading above the table.
        words: the paragraph above the table.
        columns: the heads of the three columns: the host, the case, the result.
    """

    title: str
    words: str
    columns: tuple[str, str, str]


TABLES: dict[str, Table] = {
    "content": Table(
        "Contents",
        """*Exact*: every decoded picture equals that of the clear clip. `make test` compares the pictures of two
programs in the same way: [multi_instance.cpp](../examples/cpp/multi_instance.cpp) plays two encrypted streams at once,
and [loaded.c](../examples/c/loaded.c) loads libusher with `dlopen()`.""",
        ("host", "content", "result"),
    ),
    "trouble": Table(
        "When something is wrong",
        """This table says what the viewer sees, and what the player does. At the limit, [mpv](images/mpv-limit.png),
[usher-gst-play](images/gstreamer-limit.png) and [a web page in Chromium](images/chromium-limit.png) show why they do
not play. `usher run` and `usher gateway` have no screen: they print why on standard error.

The tests of the gateway with ffmpeg, mpv, VLC and GStreamer show what happens at the limit, and when the operator ends
the session; with ffmpeg also what happens when the head-end dies. These players see only the replies of the gateway, so
other tests check its replies to all other failures.

With two exceptions, no call of libusher holds a thread of a player for 50 ms. The tests measure every call of the
plug-ins, without the time in which the thread has no processor. With servers that do not reply, the longest call took
1.1 ms on a machine with two processors: `usher_context_new`, which starts the threads of the library. The exceptions:
when the process ends, the GStreamer plug-in waits at most `close-timeout` for the last
[teardowns](glossary.md#teardown) (`usher_context_free`); and while mpv loads an item (`on_load`), `usher_read_mp4`
reads it. This command prints the times of all functions:

```sh
USHER_LIBRARY=$PWD/build/shipped/libusher.so .venv/bin/python -m pytest -q -s Tests/hosts -k noCallWaits
```""",
        ("host", "what happens", "result"),
    ),
    "ends": Table(
        "Ends",
        "This table says what the head-end holds after the player has ended, and for how long.",
        ("host", "end", "what the head-end holds"),
    ),
}


def row(table: str, host: str, case: str, result: str) -> str:
    """Returns one line of a table.

    Raises:
        KeyError: no such table.
    """
    assert table in TABLES, f"{table} is none of {', '.join(TABLES)}"
    for text in (host, case, result):
        assert text and "|" not in text and "\n" not in text, f"a row cannot have this text: {text!r}"
    return f"| {host} | {case} | {result} |"


def render(rows: dict[str, set[str]]) -> str:
    """Returns the text of the page. `rows` maps the name of each table to its lines."""
    lines = [HEAD]
    for name, table in TABLES.items():
        if rows.get(name):
            head = f"| {' | '.join(table.columns)} |"
            lines += [f"## {table.title}", "", table.words, "", head, "|---|---|---|", *sorted(rows[name]), ""]
    return "\n".join(lines).rstrip() + "\n"
