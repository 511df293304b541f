"""The report of ``usher check``: a table, JSON and JUnit XML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ..output import indented
from ..wire import show
from ..wire.redact import Redactor
from .engine import Report, Verdict
from .story import Seen, describe

if TYPE_CHECKING:
    from rich.console import Console

MOST_SKIPPED = 8
"""If the check skips more statements than this for one reason, the report prints their number instead of their tags."""
_MARKS = {
    "passed": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "warned": ("!", "yellow"),
    "skipped": ("-", "dim"),
}
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def print_table(console: Console, report: Report) -> None:
    """Prints one row for each statement."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column("statement", no_wrap=True)
    table.add_column("docs/protocol.md says", overflow="fold")
    table.add_column("asked", justify="right")
    for verdict in report.verdicts:
        mark, style = _MARKS[verdict.outcome]
        text = Text(verdict.statement.text, style="dim" if verdict.outcome == "skipped" else "")
        asked = str(verdict.asked) if verdict.asked else "-"
        table.add_row(Text(mark, style=style), Text(verdict.statement.tag, style=style), text, asked)
    console.print(table)
    console.print()


def print_findings(console: Console, report: Report, redactor: Redactor, *, quiet: bool) -> None:
    """Prints each fault and each warning, with the shortest story that shows it."""
    for verdict in [*report.of("failed"), *report.of("warned")]:
        mark, style = _MARKS[verdict.outcome]
        console.print(f"{mark} {verdict.statement.tag}: {verdict.statement.text}", style=style)
        console.print(indented(f"{_subject(verdict)}: {redactor.text(verdict.words)}.", console.width))
        if verdict.history is not None:
            sent = verdict.history.seen
            count = "1 request" if len(sent) == 1 else f"{len(sent)} requests"
            console.print(indented(f"The shortest story, {count}: {describe(verdict.history.story)}", console.width))
        if verdict.again:
            console.print(indented(verdict.again, console.width))
        if not quiet:
            console.print()
            for seen in _told(verdict):
                console.print(show.as_text(seen.exchange, redactor), soft_wrap=True)
        elif verdict.history is not None:
            console.print()


def print_verdict(console: Console, report: Report) -> None:
    """Prints the last lines: limit, period and token rotation of the head-end, and how many statements it keeps."""
    facts = []
    if report.limit is not None:
        facts.append(f"limit {report.limit}")
    if report.period_s is not None:
        facts.append(f"period {report.period_s:g} s")
    if report.rotation:
        facts.append(report.rotation)
    if facts:
        console.print(f"The head-end: {', '.join(facts)}.")
    skipped = report.of("skipped")
    for words in sorted({verdict.words for verdict in skipped}):
        tags = _few([verdict.statement.tag for verdict in skipped if verdict.words == words])
        console.print(indented(f"Skipped: {tags}: {words}.", console.width, ""), style="dim")
    counts = f"{len(report.of('passed'))} passed, {len(report.of('failed'))} failed"
    if report.of("warned"):
        counts += f", {len(report.of('warned'))} warned"
    if skipped:
        counts += f", {len(skipped)} skipped"
    style = "bold red" if report.of("failed") or report.unreachable else "bold green"
    console.print(f"{counts}  ({report.requests} requests, {report.seconds:.1f} s, seed {report.seed})", style=style)


def _few(tags: list[str]) -> str:
    return ", ".join(tags) if len(tags) <= MOST_SKIPPED else f"{len(tags)} statements"


def as_json(report: Report, redactor: Redactor) -> dict[str, Any]:
    """Returns the report as JSON."""
    return {
        "ok": not report.of("failed") and not report.unreachable,
        "limit": report.limit,
        "period_s": report.period_s,
        "rotation": report.rotation,
        "requests": report.requests,
        "seconds": round(report.seconds, 3),
        "seed": report.seed,
        "statements": [_verdict_json(verdict, redactor) for verdict in report.verdicts],
    }


def as_junit(report: Report, redactor: Redactor) -> str:
    """Returns the report as JUnit XML."""
    suite = ElementTree.Element(
        "testsuite",
        name="usher check",
        tests=str(len(report.verdicts)),
        failures=str(len(report.of("failed"))),
        skipped=str(len(report.of("skipped"))),
        errors="0",
        time=f"{report.seconds:.3f}",
    )
    for verdict in report.verdicts:
        name = f"{verdict.statement.tag}: {verdict.statement.text}"
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"usher.check.{verdict.statement.section}", name=name
        )
        if verdict.outcome == "skipped":
            ElementTree.SubElement(case, "skipped", message=verdict.words)
        elif verdict.outcome == "warned":
            ElementTree.SubElement(case, "system-out").text = _printable(f"warning: {redactor.text(verdict.words)}")
        elif verdict.outcome == "failed":
            words = _printable(f"{_subject(verdict)}: {redactor.text(verdict.words)}")
            failure = ElementTree.SubElement(case, "failure", message=words)
            failure.text = _printable(_details(verdict, redactor))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """Returns a text without the characters that XML cannot have."""
    return _NOT_IN_XML.sub("", text)


def _details(verdict: Verdict, redactor: Redactor) -> str:
    told = "\n".join(show.as_text(seen.exchange, redactor, "").plain for seen in _told(verdict))
    story = "" if verdict.history is None else describe(verdict.history.story)
    return f"{story}\n\n{told}"


def _subject(verdict: Verdict) -> str:
    if verdict.seen is None or verdict.history is None:
        return verdict.statement.tag
    number = verdict.history.seen.index(verdict.seen) + 1
    return f"request {number}, {verdict.seen.ask}"


def _told(verdict: Verdict) -> list[Seen]:
    """Returns the requests up to the one that shows the fault."""
    if verdict.history is None or verdict.seen is None:
        return []
    return verdict.history.seen[: verdict.history.seen.index(verdict.seen) + 1]


def _verdict_json(verdict: Verdict, redactor: Redactor) -> dict[str, Any]:
    return {
        "tag": verdict.statement.tag,
        "statement": verdict.statement.text,
        "section": verdict.statement.section,
        "outcome": verdict.outcome,
        "asked": verdict.asked,
        "words": redactor.text(verdict.words),
        "story": None if verdict.history is None else describe(verdict.history.story),
        "again": verdict.again,
        "exchanges": [show.as_json(seen.exchange, redactor) for seen in _told(verdict)],
    }
