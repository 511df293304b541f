"""Writes the table "Every function" of docs/threading.md."""

from __future__ import annotations

import re

from headers import Function, Headers


def cell(function: Function, label: str, otherwise: str) -> str:
    """Returns the text after a label of the function's comment, with the names in it as code."""
    said = function.labels.get(label, otherwise)
    if said == "no" and label != "Waits" and "USHER_E_WOULD_DEADLOCK" in function.comment:
        said = "no: USHER_E_WOULD_DEADLOCK"
    return re.sub(r"(?<!`)\b(?:usher|USHER)_\w+(?:\(\))?", r"`\g<0>`", said)


def threads(headers: Headers) -> str:
    lines = ["| function | in callbacks | waits | on the pumping thread |", "|---|---|---|---|"]
    for name, function in headers.functions.items():
        cells = [
            cell(function, "In callbacks", "?"),
            cell(function, "Waits", "no"),
            cell(function, "Pumping thread", "yes"),
        ]
        lines.append(f"| `{name}()` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def check(headers: Headers) -> list[str]:
    """Returns an error for each label that a function's comment lacks."""
    found = []
    for name, function in headers.functions.items():
        for label in ("Threads", "In callbacks", "Since"):
            if label not in function.labels:
                found.append(
                    f'{function.header}: the comment of {name}() has no "{label}:"; write it, as its neighbours do'
                )
    return found
