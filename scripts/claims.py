"""Claims of a test script: a line "ok - ..." or "not ok - ..." for each, and how many were wrong."""

from __future__ import annotations

DETAIL_MOST = 3000
"""If a claim is wrong, check() prints at most this many characters of its details: the last ones."""

failed = 0
"""How many claims were wrong."""


def check(holds: bool, what: str, detail: object = "") -> bool:
    """Prints a claim, with details if it is wrong. Returns whether it holds."""
    global failed
    failed += not holds
    print(f"{'ok' if holds else 'not ok'} - {what}", flush=True)
    text = str(detail).strip()[-DETAIL_MOST:]
    if not holds and text:
        print("    " + text.replace("\n", "\n    "), flush=True)
    return holds


def verdict() -> str:
    return "All of it works." if not failed else f"{failed} failed."
