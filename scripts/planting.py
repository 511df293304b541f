"""Finds the source text that a mutant changes; used by scripts/mutants and scripts/row-mutants."""

from __future__ import annotations

import re


def places(text: str, pattern: str) -> list[tuple[int, int]]:
    """Returns the start and end position of each occurrence of `pattern` in `text`.

    The search ignores white space, so that a formatter may change the layout of the source without breaking a mutant.
    """
    pieces = [re.escape(letter) for letter in re.sub(r"\s+", "", pattern)]
    return [found.span() for found in re.finditer(r"\s*".join(pieces), text)]
