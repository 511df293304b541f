"""Finds the source text that a mutant changes. What scripts/mutants and scripts/row-mutants share; standard library only."""

from __future__ import annotations

import re


def places(text: str, pattern: str) -> list[tuple[int, int]]:
    """Where `pattern` stands in `text`: first and last + 1 position of each place.

    Line breaks and blanks do not count, so that a formatter may lay the source out anew without any mutant being touched.
    """
    pieces = [re.escape(letter) for letter in re.sub(r"\s+", "", pattern)]
    return [found.span() for found in re.finditer(r"\s*".join(pieces), text)]
