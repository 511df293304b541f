"""A head-end that is not the reference head-end: its URLs and tokens. A test that needs more than these is skipped."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

DEFAULT_ACCOUNT = "account-1"
_COMMAND_TIMEOUT_S = 30


@dataclass(frozen=True)
class ForeignHeadEnd:
    """A head-end that the plugin has not started. Its tests run in real time.

    It has the addresses and tokens of the options ``--usher-…``. Every other attribute of ``usher.testing.headend
    .HeadEnd`` (journal, session table, faults, clock …) skips the test and names the reason.

    Attributes:
        ssm_url: the SSM URL.
        license_address: the URL of the licence service; None: there is none.
        key_system: the key system of the licence service.
        token: the content token; None: there is none.
        token_command: a program that prints the content token of the account in its last argument.
        limit: how many sessions an account may have; None: not known.
        ca_file: the certificate authority to trust; None: those of the system.
        headers: further headers for each request.
    """

    ssm_url: str
    license_address: str | None = None
    key_system: str = "clearkey"
    token: str | None = field(default=None, repr=False)
    token_command: str | None = field(default=None, repr=False)
    limit: int | None = None
    ca_file: Path | None = None
    headers: tuple[str, ...] = field(default=(), repr=False)

    def license_url(self, key_system: str, api: str = "v1") -> str:
        """Returns the URL of the licence service. Skips the test if there is no licence service, or if it is for
        another key system or for another version than v1."""
        if self.license_address is None:
            self._skip("a licence service", "name it with --usher-license-url")
        if key_system != self.key_system or api != "v1":
            self._skip(f"a licence service for {key_system}, {api}", f"--usher-key-system says {self.key_system}, v1")
        return self.license_address

    def content_token(self, account: str | None = DEFAULT_ACCOUNT, content_id: str = "content-1", **claims: Any) -> str:
        """Returns a content token of an account. Without ``--usher-token-command`` only the default account has a
        token. Skips the test if the account has no token, or if the test chooses claims of the token."""
        if claims:
            self._skip(f"a content token with {', '.join(sorted(claims))}", "its back end chooses the tokens")
        if self.token_command is not None:
            return self._print_token(account or "")
        if self.token is None:
            self._skip("a content token", "use --usher-token-file or --usher-token-command")
        if account != DEFAULT_ACCOUNT:
            self._skip(f"a content token of the account {account}", "use --usher-token-command")
        return self.token

    def require(self, **settings: Any) -> None:
        """Skips the test if it needs other settings of the head-end than the options state."""
        if "limit" in settings and settings.pop("limit") != self.limit:
            limit = "is unknown" if self.limit is None else f"is {self.limit}"
            self._skip("another limit of sessions", f"its limit {limit}; --usher-limit states it")
        if settings:
            self._skip(f"{', '.join(sorted(settings))} of the reference head-end", "its settings cannot be chosen")

    def __getattr__(self, name: str) -> NoReturn:
        from usher.testing.headend import HeadEnd

        if name.startswith("_") or not (hasattr(HeadEnd, name) or name in ("journal", "sessions", "faults", "clock")):
            raise AttributeError(f"a head-end has no {name}")
        self._skip(f"{name} of the reference head-end", "only its URLs and tokens are known")

    def _print_token(self, account: str) -> str:
        command = [*shlex.split(self.token_command or ""), account]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False)
        token = done.stdout.strip()
        if done.returncode or not token:
            pytest.fail(f"--usher-token-command ended with {done.returncode}: {done.stderr.strip()}", pytrace=False)
        return token

    def _skip(self, need: str, hint: str) -> NoReturn:
        pytest.skip(f"needs {need}; {self.ssm_url} is another head-end: {hint}")
