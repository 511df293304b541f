"""Puts the verdict of ``usher load`` on top of the HTML report of Locust, which does not know the thresholds."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

_STYLE = "font-family: sans-serif; max-width: 60rem; margin: 2rem auto 0; padding: 0 1rem"
_CELL = "text-align: right; padding: 0.2rem 1rem 0.2rem 0"
_COLUMNS = (
    ("count", "count"),
    ("failed", "failed"),
    ("p50 ms", "p50_ms"),
    ("p99 ms", "p99_ms"),
    ("most ms", "most_ms"),
)


def add_verdict(path: Path, value: dict[str, Any]) -> None:
    """Writes the verdict, the figures of the operations and the cost into the report.

    Args:
        path: the report, as Locust has written it.
        value: the figures, with ``exceeded`` and ``million``.

    Raises:
        OSError: the report cannot be read or written.
        ValueError: the file is no HTML page.
    """
    page = path.read_text(encoding="utf-8")
    before, body, after = page.rpartition("<body>")  # the scripts before it have this word too, with attributes
    if not body:
        raise ValueError(f"{path} is no HTML page")
    path.write_text(f"{before}{body}\n{_section(value)}\n{after}", encoding="utf-8")


def _section(value: dict[str, Any]) -> str:
    exceeded = value["exceeded"]
    verdict = "Thresholds exceeded" if exceeded else "All thresholds kept"
    colour = "#c62828" if exceeded else "#2e7d32"
    lines = [f'<section style="{_STYLE}">', f'<h1 style="color: {colour}">usher load: {verdict}</h1>']
    lines += [f"<p>{escape(words)}</p>" for words in exceeded]
    lines.append("<table><tr><th></th>" + "".join(f'<th style="{_CELL}">{name}</th>' for name, _ in _COLUMNS) + "</tr>")
    for name, figures in value["operations"].items():
        cells = "".join(f'<td style="{_CELL}">{figures[key]:,.0f}</td>' for _, key in _COLUMNS)
        lines.append(f"<tr><td>{escape(name)}</td>{cells}</tr>")
    lost = sum(process["lost"] for process in value["processes"])
    lines.append(
        f"</table><p>Heartbeats more than {value['late_ms']} ms late: {value['late']:,}. Sessions lost: {lost:,}.</p>"
    )
    if value["million"]:
        cost = value["million"]
        lines.append(
            f"<p>Clients: {cost['cpu_us_per_request']:,} µs of processor time per request, "
            f"{cost['bytes_per_playback']:,} bytes per playback.</p>"
        )
    for error in value["errors"]:
        lines.append(f"<p>{error['count']:,} times {escape(error['operation'])}: {escape(error['error'])}</p>")
    return "\n".join([*lines, "</section>"])
