"""The tests of the plugin run pytest on small test suites of their own."""

pytest_plugins = ["pytester"]
