"""Finds the source text that a mutant changes; used by scripts/mutants and scripts/row-mutants."""

from __future__ import annotations

import re


def places(text: str, pattern: str) -> list[tuple[int, int]]:
    """Where `text` has `pattern`: start and end position of each occurrence.

    White space does not count, so that a formatter may lay the source out anew without a change to any mutant.
    """
    pieces = [re.escape(letter) for letter in re.sub(r"\s+", "", pattern)]
    return [found.span() for found in re.finditer(r"\s*".join(pieces), text)]
