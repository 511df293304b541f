"""The fixture ``token_form``: the form of the tokens in a test.

A token is a JWT, or an opaque text: a UUID, 12 letters or 13 digits. The library must treat all of them alike. Each run
has a seed, and a test's form depends on this seed and on the name of the test. At its end the run prints the seed; to
get the same forms again, set USHER_TOKEN_SEED. Four seeds in a row give each test all four forms.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Generator

import pytest

FORMS = ("jwt", "uuid", "letters", "digits")
SETTING = "USHER_TOKEN_SEED"
SEED = int(os.environ.get(SETTING) or random.randrange(len(FORMS)))

_used: list[str] = []


@pytest.fixture
def token_form(request: pytest.FixtureRequest) -> str:
    """The form of this test's tokens: a value of the head-end's setting ``token_form``."""
    form = FORMS[(zlib.crc32(request.node.nodeid.encode()) + SEED) % len(FORMS)]
    _used.append(form)
    request.node.user_properties.append(("token_form", form))
    return form


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the form of the tokens to the report of a failed test."""
    report = yield
    form = dict(item.user_properties).get("token_form")
    if report.failed and form:
        report.sections.append(("form of the tokens", f"{form}; for the same form, set {SETTING}={SEED}"))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _used:
        counts = ", ".join(f"{_used.count(form)} {form}" for form in FORMS)
        terminalreporter.write_line(f"tests by form of their tokens: {counts} ({SETTING}={SEED})")
