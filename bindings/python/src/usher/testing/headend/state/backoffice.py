"""An operator's back end: makes tokens and keeps content keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ... import media
from ...media import Content
from ..service import Service
from . import key_tokens
from .accounts import AccountRights
from .keystore import KeyStore

_NO_KEYS: Mapping[bytes, bytes] = MappingProxyType({})


class BackOffice:
    """The operator's side of a head-end."""

    _service: Service
    keys: KeyStore

    @property
    def now_ms(self) -> int:
        """The time on its clock, ms since the Unix epoch."""
        return self._service.clock.now_ms()

    def content_token(
        self,
        account: str | None = "account-1",
        content_id: str = "content-1",
        *,
        max_sessions: int | None = None,
        expires_in_s: float | None = 86_400,
        device: str | None = None,
        session_control: bool = True,
        kids: Sequence[bytes] = (),
        jti: str | None = None,
        key_token: str | None = None,
        key: bytes | None = None,
        **extra: Any,
    ) -> str:
        """A ContentAuthZ token.

        Args:
            account: ``device.accountId``; None: no such claim.
            content_id: ``contentRights[0].contentId``.
            max_sessions: ``sessionControl.maxSessions``; None: ``config.limit``.
            expires_in_s: seconds from now on the head-end's clock, may be negative; None for no ``exp``.
            device: ``device.deviceId``.
            session_control: ``sessionControl.sessionControlEnabled``.
            kids: ``defaultKcIds``, 16 bytes each.
            jti: anti-replay id: with ``exp`` the token is valid for one licence.
            key_token: name of its key token; ``content_token_with_key`` sets it.
            key: sign with another key, for a token whose signature does not verify.
            extra: further claims, or other values for these.
        """
        return self._service.mint.content(
            account=account,
            content_id=content_id,
            max_sessions=max_sessions,
            exp=self._exp(expires_in_s),
            device=device,
            session_control=session_control,
            kids=kids,
            jti=jti,
            key_token=key_token,
            extra=extra,
            key=key,
        )

    def content_token_with_key(
        self,
        account: str | None = "account-1",
        content_id: str = "content-1",
        *,
        keys: Mapping[bytes, bytes] = _NO_KEYS,
        **arguments: Any,
    ) -> str:
        """A content token, a comma, and the content key token it refers to, an encrypted JWE.

        Args:
            account: as for ``content_token``.
            content_id: as for ``content_token``.
            keys: the content keys it carries, by key id; licences use these before the key store.
            arguments: further ones for ``content_token``.
        """
        sealed = key_tokens.seal(keys, self._service.mint.key_token_secret, self._service.mint.key_id)
        return f"{self.content_token(account, content_id, key_token=key_tokens.name_of(sealed), **arguments)},{sealed}"

    def device_token(
        self,
        account: str | None = "account-1",
        device: str = "device-1",
        *,
        expires_in_s: float | None = 86_400,
        **extra: Any,
    ) -> str:
        """A DevAuthN token."""
        return self._service.mint.device(account=account, device=device, exp=self._exp(expires_in_s), extra=extra)

    def revoke_tokens(self, account: str | None = None) -> None:
        """Refuses all existing content and device tokens, of one account or of all; newer ones are valid."""
        self._service.revoke(account)

    def register_device(self, device: str, account: str = "account-1") -> None:
        """Registers a device for an account; after the first, device tokens of unknown devices are refused."""
        self._service.accounts.register(device, account)

    def unregister_device(self, device: str) -> None:
        """Forgets a device."""
        self._service.accounts.unregister(device)

    def grant_rights(
        self, account: str, *content_ids: str, max_sessions: int | None = None, session_control: bool = True
    ) -> None:
        """Sets the rights of an account's device tokens, which contain no rights.

        Args:
            account: the account.
            content_ids: contents whose keys it may get; None: any.
            max_sessions: its concurrent streams; None: ``config.limit``.
            session_control: whether its licences need a session.
        """
        rights = AccountRights(frozenset(content_ids) if content_ids else None, max_sessions, session_control)
        self._service.accounts.grant(account, rights)

    def operator_token(self, *, expires_in_s: float | None = 86_400) -> str:
        """An AuthN token for operator calls."""
        return self._service.mint.operator(exp=self._exp(expires_in_s))

    def _exp(self, expires_in_s: float | None) -> int | None:
        return None if expires_in_s is None else int(self.now_ms / 1000 + expires_in_s)

    def add_key(self, kid: bytes, key: bytes, content_id: str | None = None) -> None:
        """Adds a content key, id and key 16 bytes each: a key of one content (it may have several), or for any."""
        self.keys.add(kid, key, content_id)

    def add_media(self, media_json: Path | str) -> list[Content]:
        """Adds the keys in a ``media.json``, each to its content; returns the contents.

        Raises:
            OSError, ValueError: as ``usher.testing.media.read``.
        """
        contents = media.read(media_json)
        for content in contents:
            for key in content.keys:
                self.add_key(key.kid, key.key, content.content_id)
        return contents

    def rights_token(
        self,
        content_id: str = "content-1",
        *,
        kid: bytes | None = None,
        expires_in_s: float | None = None,
        uses: int | None = None,
        cookie: str | None = None,
        device: bytes | None = None,
    ) -> str:
        """An ExpressPlay token, as an operator's back end requests it.

        Args:
            content_id: the content; its keys are those added with this content id.
            kid: valid for this key only.
            expires_in_s: seconds from now on the head-end's clock; None leaves it to ``config.expressplay``.
            uses: number of licences; None leaves it to ``config.expressplay``.
            cookie: the device that uses the token is registered under this cookie.
            device: valid for this device only.
        """
        made = self._service.right(
            content_id, kid=kid, expires_in_s=expires_in_s, uses=uses, cookie=cookie, device=device
        )
        return self._service.rights.issue(made)

    def rights_token_url(self, content_id: str = "content-1", **arguments: Any) -> str:
        """The licence URL with a token in it; arguments as for ``rights_token``."""
        return (
            f"{self._service.tenant_url}/hms/fp/rights/?ExpressPlayToken={self.rights_token(content_id, **arguments)}"
        )

    def deny(self, content_id: str, text: str = "not in your package", error: int = 1) -> None:
        """Makes the entitlement server deny a content, with a number and a text for the viewer."""
        self._service.rights.deny(content_id, error, text)

    def allow(self, content_id: str) -> None:
        """Undoes ``deny``."""
        self._service.rights.allow(content_id)

    def registered_device(self, cookie: str) -> bytes | None:
        """The device registered under a cookie, None for none."""
        return self._service.rights.device(cookie)
