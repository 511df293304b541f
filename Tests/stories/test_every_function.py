"""Every function of the headers is called, and answers well, in at least one test of this suite: traced call by call, checked by name.

Not counted: calls that failed, and the sweeps that call every function in a loop with wrong handles. Comes last (see conftest.py), and is skipped
where only some of the suite runs.
"""

from __future__ import annotations

from typing import Any

import pytest

from test_abi import INCLUDE, prototypes

NAMES = sorted(prototypes()) if (INCLUDE / "usher").is_dir() else []


@pytest.mark.parametrize("name", NAMES)
def test_function_ofTheHeader_isCalledByATest(calls: Any, name: str) -> None:
    if not calls.is_whole_suite:
        pytest.skip("only some of the suite runs")
    assert calls.tests_of.get(name), f"no test calls {name}() with success: write one"
