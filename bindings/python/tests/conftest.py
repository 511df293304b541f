"""Fixtures of the package's tests: the reference head-end."""

pytest_plugins = ["usher.testing.pytest_plugin"]
