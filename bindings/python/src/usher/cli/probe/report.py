"""The report of ``usher probe``, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..output import indented
from ..wire import show

if TYPE_CHECKING:
    from rich.console import Console

    from .steps import Probe, Step

_MARKS = {"ok": ("✓", "green"), "failed": ("✗", "bold red"), "skipped": ("-", "dim")}


def print_step(console: Console, probe: Probe, step: Step, *, quiet: bool) -> None:
    """Prints a step: its name and time, its requests (unless `quiet`), what it showed, warnings of the library, and
    advice."""
    from rich.text import Text

    mark, style = _MARKS[step.outcome]
    title = Text(f"{mark} {step.name}", style=style)
    if step.outcome != "skipped":
        title.append(f"  {show.milliseconds(step.ms)}", style="dim")
    console.print(title)
    if not quiet:
        left_out = len(step.exchanges) - 2
        for number, exchange in enumerate(step.exchanges):
            if number == 1 and left_out > 1:
                console.print(f"    ({left_out} more attempts; --json has them)\n", style="dim")
            if left_out <= 1 or number in (0, len(step.exchanges) - 1):
                console.print(show.as_text(exchange, probe.redactor), soft_wrap=True)
    console.print(indented(step.words, console.width))
    for warning in step.warnings:
        console.print(indented(f"Warning: {probe.redactor.text(warning)}", console.width), style="yellow")
    if step.advice:
        console.print(indented(f"Next: {step.advice}", console.width))
    if not quiet:
        console.print()


def print_verdict(console: Console, probe: Probe) -> None:
    """Prints the last line: whether a player with the library would play."""
    failed = [step.name for step in probe.steps if step.failed]
    if failed:
        console.print(f"{failed[0]} failed: a player with libusher has this fault too.", style="bold red")
        return
    skipped = [step.name for step in probe.steps if step.outcome == "skipped"]
    note = f" Skipped: {', '.join(skipped)}." if skipped else ""
    console.print(f"A player with libusher can play here.{note}", style="bold green")


def as_json(probe: Probe) -> dict[str, Any]:
    """Returns the whole report as JSON."""
    return {
        "ok": not any(step.failed for step in probe.steps),
        "steps": [_step_json(probe, step) for step in probe.steps],
    }


def _step_json(probe: Probe, step: Step) -> dict[str, Any]:
    error = step.error
    return {
        "step": step.name,
        "outcome": step.outcome,
        "words": step.words,
        "next": step.advice,
        "ms": round(step.ms, 1),
        "warnings": [probe.redactor.text(line) for line in step.warnings],
        "error": None
        if error is None
        else {
            "status": error.status.name,
            "origin": error.origin.name.lower(),
            "http_status": error.http_status,
            "service_code": error.service_code,
            "message": probe.redactor.text(error.message),
        },
        "exchanges": [show.as_json(exchange, probe.redactor) for exchange in step.exchanges],
    }
