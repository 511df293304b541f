"""Exchanges as text and as JSON, without tokens and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .exchange import Exchange, Timing
from .redact import Redactor

if TYPE_CHECKING:
    from rich.text import Text


def milliseconds(value: float) -> str:
    """Returns a duration as text."""
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def timing(value: Timing) -> str:
    """Returns as text how long a request took, and how long each of its steps took."""
    parts = ", ".join(f"{name} {milliseconds(part)}" for name, part in value.parts())
    return f"{milliseconds(value.total)}: {parts}" if parts else milliseconds(value.total)


def as_text(exchange: Exchange, redactor: Redactor, indent: str = "    ") -> Text:
    """Returns an exchange as HTTP clients show it: ``>`` begins what was sent, ``<`` what came back."""
    from rich.text import Text

    made = Text()

    def line(mark: str, text: str, style: str = "") -> None:
        made.append(f"{indent}{mark} " if text else f"{indent}{mark}", style="dim")
        made.append(f"{text}\n", style=style)

    def part(mark: str, headers: Any, content: bytes | None) -> None:
        for name, value in redactor.headers(headers):
            made.append(f"{indent}{mark} ", style="dim")
            made.append(f"{name}: ", style="cyan")
            made.append(f"{value}\n")
        body = redactor.body(content)
        if body:
            line(mark, "")
            line(mark, body)

    line(">", f"{exchange.method} {redactor.url(exchange.url)}", "bold")
    part(">", exchange.request_headers, exchange.request_body)
    if exchange.status:
        style = "bold green" if exchange.succeeded else "bold red"
        line("<", f"{exchange.status} {exchange.reason}".rstrip(), style)
        part("<", exchange.headers, exchange.content() if exchange.failure is None else exchange.body)
    if exchange.failure is not None:
        line("<", f"no {'complete ' if exchange.status else ''}reply: {exchange.failure.name.lower()}", "bold red")
    line("*", timing(exchange.timing), "dim")
    return made


def as_json(exchange: Exchange, redactor: Redactor) -> dict[str, Any]:
    """Returns an exchange as JSON."""
    made: dict[str, Any] = {
        "request": {
            "method": exchange.method,
            "url": redactor.url(exchange.url),
            "headers": redactor.headers(exchange.request_headers),
            "body": redactor.body(exchange.request_body),
        },
        "reply": None,
        "failure": None if exchange.failure is None else exchange.failure.name.lower(),
        "timing_ms": {"total": round(exchange.timing.total, 1)}
        | {name: round(value, 1) for name, value in exchange.timing.parts()},
    }
    if exchange.status:
        made["reply"] = {
            "status": exchange.status,
            "headers": redactor.headers(exchange.headers),
            "body": redactor.body(exchange.content() if exchange.failure is None else exchange.body),
        }
    return made
