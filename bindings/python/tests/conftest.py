"""Fixtures of the whole suite: the reference head-end."""

from __future__ import annotations

pytest_plugins = ["usher.testing.pytest_plugin"]
