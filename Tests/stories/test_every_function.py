"""For each function of the headers, at least one story calls it successfully. ``calls.py`` records the calls.

Calls that fail do not count, and neither do the tests that call every function in a loop with wrong handles. The tests
of this file run last (see ``calls.py``); pytest skips them if only some of the stories run.
"""

from __future__ import annotations

from typing import Any

import pytest

from usher._c import abi


def test_tableOfFunctions_isAlwaysTheSame(lib: Any) -> None:
    """Calls ``usher_get_api()``, which no other story needs; ``test_abi.py`` of the Python package compares its
    contents."""
    assert lib.usher_get_api(abi.VERSION[0]) == lib.usher_get_api(abi.VERSION[0]) != 0


@pytest.mark.parametrize("name", sorted(abi.PROTOTYPES))
def test_function_ofTheHeader_isCalledByATest(calls: Any, name: str) -> None:
    if not calls.is_whole_suite:
        pytest.skip("only some of the stories run")
    assert calls.tests_of.get(name), f"no test calls {name}() with success: write one"
