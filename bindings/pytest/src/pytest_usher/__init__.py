"""A pytest plugin for players and head-ends: a reference head-end, a stage with one clock for player and head-end,
fault scripts, and checks of the journal whose failures name what is wrong.

pytest loads it by itself when the distribution pytest-usher is installed. docs/pytest.md in the project's repository is
the manual.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .events import EventLog as EventLog
    from .expect import Expectations as Expectations
    from .fixtures import HeadEndFactory as HeadEndFactory
    from .foreign import ForeignHeadEnd as ForeignHeadEnd
    from .stage import KEY as KEY
    from .stage import KID as KID
    from .stage import Stage as Stage
    from .stage import StageFactory as StageFactory

_HOMES = {
    "EventLog": "events",
    "Expectations": "expect",
    "ForeignHeadEnd": "foreign",
    "HeadEndFactory": "fixtures",
    "KEY": "stage",
    "KID": "stage",
    "Stage": "stage",
    "StageFactory": "stage",
}
"""The module of each name. pytest loads the plugin in every run, also if no test uses the library. So the package loads
a module only when a program first uses one of its names."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
