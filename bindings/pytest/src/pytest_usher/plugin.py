"""The plugin: its options, markers and fixtures, and the journals in the reports of tests."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from . import options
from .fixtures import FAILED, HEAD_ENDS
from .fixtures import door_factory as door_factory  # pytest finds the fixtures here
from .fixtures import expect as expect
from .fixtures import headend as headend
from .fixtures import headend_factory as headend_factory
from .fixtures import headend_settings as headend_settings
from .fixtures import stage as stage
from .fixtures import stage_factory as stage_factory
from .fixtures import usher_context as usher_context
from .fixtures import usher_foreign_headend as usher_foreign_headend

_TITLE = "head-end journal"
_MARKERS = (
    "usher_headend(**settings): settings of the reference head-end of this test, such as limit=1 or tls=True",
    "usher_context(**options): options of the context of the fixture stage",
    "usher_faults(route, *faults, **options): faults that the head-end makes, as in FaultScript.add()",
    "usher_leaves_session(reason): at the end of this test a session remains at the head-end, on purpose",
    "usher_breaks_rules(*kinds): violations of the protocol that this test causes on purpose",
    "usher_callback_errors(reason): callbacks of this test raise on purpose",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options ``--usher-…``."""
    options.add(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Adds the markers, and checks the options."""
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    options.foreign(config)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Returns a line that says which head-end the tests use; None for the reference head-end."""
    other = options.foreign(config)
    return None if other is None else f"usher: the head-end at {other.ssm_url}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the journals to the report, and remembers whether the test has failed."""
    report = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    when = item.config.getoption("--usher-journal")
    wanted = (when == "always" and report.when == "call") or (when == "failed" and report.failed)
    if wanted and not any(title.startswith(_TITLE) for title, _ in report.sections):
        for head_end in item.stash.get(HEAD_ENDS, []):
            report.sections.append((f"{_TITLE} {head_end.url}", head_end.journal.dump()))
    return report
