"""The accounts in an operator's back end. Device tokens contain no rights, so the head-end takes the rights from the
account."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from ..codes import Problem, Refusal
from .tokens import TokenPart


@dataclass(frozen=True, slots=True)
class AccountRights:
    """The rights of an account.

    Attributes:
        content_ids: the contents that the account may play; None: all contents.
        max_sessions: how many concurrent streams the account may play; None: ``config.limit``.
        session_control: whether licences of the account need a session.
    """

    content_ids: frozenset[str] | None = None
    max_sessions: int | None = None
    session_control: bool = True


class AccountBook:
    """The devices and rights of each account. Any thread may call any method.

    Until the first call of register(), the head-end accepts every device. An account without an entry may play any
    content (source: device authentication token).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._devices: dict[str, str] = {}
        self._is_closed = False
        self._rights: dict[str, AccountRights] = {}

    def register(self, device: str, account: str) -> None:
        """Registers a device for an account. From the first call on, the head-end refuses devices that are not
        registered."""
        with self._lock:
            self._devices[device] = account
            self._is_closed = True

    def unregister(self, device: str) -> None:
        """Removes a device."""
        with self._lock:
            self._devices.pop(device, None)

    def grant(self, account: str, rights: AccountRights) -> None:
        """Sets the rights of an account."""
        with self._lock:
            self._rights[account] = rights

    def rights(self, account: str | None) -> AccountRights:
        """Returns the rights of an account; the default rights if the account has no entry."""
        with self._lock:
            return self._rights.get(account or "", AccountRights())

    def account(self, token: TokenPart) -> str | None:
        """Returns the account to which a content or device token belongs.

        Raises:
            Refusal: the device of a device token is unknown, or belongs to another account than the token.
        """
        if token.kind != "device":
            return token.account
        with self._lock:
            if not self._is_closed:
                return token.account
            account = self._devices.get(token.device or "")
        if account is None:
            raise Refusal(Problem.DEVICE_UNKNOWN, f"device {token.device!r} is not registered")
        if token.claims.get("accountId", account) != account:
            raise Refusal(Problem.DEVICE_ACCOUNT)
        return account
