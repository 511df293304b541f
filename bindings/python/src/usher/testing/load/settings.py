"""What the processes of a load test must know. The environment variable ``USHER_LOAD`` carries it to Locust."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from ..headend.config import DEFAULT_HMAC_KEY, DEFAULT_TENANT

VARIABLE = "USHER_LOAD"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one load test.

    Attributes:
        ssm_url: URL of the session manager.
        license_url: URL of the Clear Key licence server.
        licenses: whether each playback requests a licence.
        tokens_file: a file with one content token in each line; None: tokens for the reference head-end.
        tenant: the tenant in tokens for the reference head-end.
        accounts: how many accounts play; each playback uses a random one. 0: each screen has its own account.
        limit: ``maxSessions`` in tokens for the reference head-end.
        hold_s: how long a playback lasts, in seconds; 0: until the end of the test.
        pause_s: the pause between two playbacks of one screen, in seconds.
        late_ms: a heartbeat counts as late if it comes this many ms after its time, or later.
        late_most: how many late heartbeats the test may have.
        errors_most: how many errors the test may have. A refusal for the limit is no error.
        setup_p99_ms: the longest 99th percentile of the set-ups, ms; 0: no limit.
        result: the file into which the master writes the figures.
    """

    ssm_url: str
    license_url: str
    licenses: bool = False
    tokens_file: str | None = None
    tenant: str = DEFAULT_TENANT
    accounts: int = 0
    limit: int = 1
    hold_s: float = 0.0
    pause_s: float = 1.0
    late_ms: int = 500
    late_most: int = 0
    errors_most: int = 0
    setup_p99_ms: int = 0
    result: str = ""

    def environment(self) -> dict[str, str]:
        """Returns the environment variable for Locust's processes."""
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def given(cls) -> Settings:
        """Reads the environment variable.

        Raises:
            ValueError: it is missing.
        """
        text = os.environ.get(VARIABLE)
        if text is None:
            raise ValueError(f"{VARIABLE} is not set: start this test with `usher load`")
        return cls(**json.loads(text))


class Tokens:
    """The content tokens of the playbacks.

    Raises:
        OSError, ValueError: the file of tokens cannot be read, or has no token.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._given: list[str] = []
        if settings.tokens_file is not None:
            lines = Path(settings.tokens_file).read_text(encoding="utf-8").splitlines()
            self._given = [line.strip() for line in lines if line.strip()]
            if not self._given:
                raise ValueError(f"{settings.tokens_file} has no token")
        else:
            from ..headend.state.tokens import TokenMint

            self._mint = TokenMint(DEFAULT_HMAC_KEY, "usher-fixture-1", settings.tenant)

    def token(self, number: int, account: str) -> str:
        """Returns the token of an account. If there is a file of tokens, ignores `account` and returns the token number
        ``number``, counted from 0; after the last token it begins again with the first."""
        if self._given:
            return self._given[number % len(self._given)]
        return self._mint.content(
            account=account,
            content_id="load",
            max_sessions=self._settings.limit,
            exp=None,
            device=None,
            session_control=True,
            kids=(),
            jti=None,
            key_token=None,
            extra={},
        )
