"""The command line options ``--usher-…``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .foreign import ForeignHeadEnd

JOURNAL_CHOICES = ("failed", "always", "never")


def add(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("usher", "head-ends and sessions (pytest-usher)")
    group.addoption(
        "--usher-headend-url",
        metavar="URL",
        help="test this head-end (its SSM URL) instead of the reference head-end; tests that need more than its URLs "
        "and tokens are skipped",
    )
    group.addoption("--usher-license-url", metavar="URL", help="the licence service of that head-end")
    group.addoption(
        "--usher-key-system",
        metavar="NAME",
        default="clearkey",
        choices=["clearkey", "fairplay", "playready", "widevine"],
        help="the key system of that licence service: clearkey (default), fairplay, playready or widevine",
    )
    group.addoption("--usher-token", metavar="TOKEN", help="a content token; other users of the machine can see it")
    group.addoption("--usher-token-file", metavar="PATH", type=Path, help="a file that has the content token")
    group.addoption(
        "--usher-token-command",
        metavar="COMMAND",
        help="a program that prints a content token; its last argument is the name of the account",
    )
    group.addoption(
        "--usher-limit", metavar="N", type=int, help="how many sessions an account of that head-end may have"
    )
    group.addoption("--usher-ca-file", metavar="PATH", type=Path, help="the certificate authority of that head-end")
    group.addoption(
        "--usher-header",
        metavar="HEADER",
        action="append",
        default=[],
        help="a further header for each request to that head-end, such as 'nv-tenant-id: T1'; repeat for more",
    )
    group.addoption("--usher-tls", action="store_true", help="all reference head-ends use TLS")
    group.addoption(
        "--usher-journal",
        metavar="WHEN",
        default="failed",
        choices=JOURNAL_CHOICES,
        help="which reports contain the journals of the head-ends: failed (default), always or never",
    )


def foreign(config: pytest.Config) -> ForeignHeadEnd | None:
    """Returns the head-end that the options name; None if they name none.

    Raises:
        pytest.UsageError: the options contradict each other, or the token file cannot be read.
    """
    url = config.getoption("--usher-headend-url")
    only_with_url = {
        name: config.getoption(name)
        for name in ("--usher-license-url", "--usher-token", "--usher-token-file", "--usher-token-command")
    }
    if url is None:
        for name, value in only_with_url.items():
            if value is not None:
                raise pytest.UsageError(f"{name} needs --usher-headend-url")
        return None
    if config.getoption("--usher-tls"):
        raise pytest.UsageError("--usher-tls is for the reference head-end; begin --usher-headend-url with https:")
    from .foreign import ForeignHeadEnd

    return ForeignHeadEnd(
        ssm_url=url.rstrip("/"),
        license_address=config.getoption("--usher-license-url"),
        key_system=config.getoption("--usher-key-system"),
        token=_token(config),
        token_command=config.getoption("--usher-token-command"),
        limit=config.getoption("--usher-limit"),
        ca_file=config.getoption("--usher-ca-file"),
        headers=tuple(config.getoption("--usher-header")),
    )


def _token(config: pytest.Config) -> str | None:
    given, path = config.getoption("--usher-token"), config.getoption("--usher-token-file")
    if given is not None and path is not None:
        raise pytest.UsageError("--usher-token and --usher-token-file contradict each other")
    if path is None:
        return given.strip() if given else None
    try:
        token = str(path.read_text(encoding="utf-8")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"--usher-token-file: {error}") from error
    if not token or "\n" in token:
        raise pytest.UsageError(f"--usher-token-file: {path} does not have one line with a token")
    return token
