"""An operator's back end: makes tokens and keeps content keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ... import media
from ...media import Content
from ..config import DEFAULT_ACCOUNT, DEFAULT_CONTENT_ID
from ..service import Service
from . import key_tokens
from .accounts import AccountRights
from .keystore import KeyStore

_NO_KEYS: Mapping[bytes, bytes] = MappingProxyType({})


class BackOffice:
    """The part of a head-end that an operator's back end uses."""

    _service: Service
    keys: KeyStore

    @property
    def now_ms(self) -> int:
        """Returns the time on the head-end's clock, in ms since the Unix epoch."""
        return self._service.clock.now_ms()

    def content_token(
        self,
        account: str | None = DEFAULT_ACCOUNT,
        content_id: str = DEFAULT_CONTENT_ID,
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
        """Makes a content token (ContentAuthZ).

        Args:
            account: ``device.accountId``; None: no such claim.
            content_id: ``contentRights[0].contentId``.
            max_sessions: ``sessionControl.maxSessions``; None: ``config.limit``.
            expires_in_s: the lifetime of the token in seconds on the head-end's clock; may be negative; None: no
                ``exp``.
            device: ``device.deviceId``.
            session_control: ``sessionControl.sessionControlEnabled``.
            kids: ``defaultKcIds``, 16 bytes each.
            jti: an id against replay: together with ``exp`` it makes the token valid for only one licence.
            key_token: the name of the key token that belongs to this token; ``content_token_with_key`` sets this name.
            key: another signing key, to make a token whose signature the head-end refuses.
            extra: further claims, or other values for the claims above.
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
        account: str | None = DEFAULT_ACCOUNT,
        content_id: str = DEFAULT_CONTENT_ID,
        *,
        keys: Mapping[bytes, bytes] = _NO_KEYS,
        **arguments: Any,
    ) -> str:
        """Makes a content token and its content key token (an encrypted JWE). Returns both, with a comma between them.

        Args:
            account: as for ``content_token``.
            content_id: as for ``content_token``.
            keys: the content keys in the key token, by key id; for licences these keys take precedence over the key
                store.
            arguments: further arguments of ``content_token``.
        """
        sealed = key_tokens.seal(keys, self._service.mint.key_token_secret, self._service.mint.key_id)
        return f"{self.content_token(account, content_id, key_token=key_tokens.name_of(sealed), **arguments)},{sealed}"

    def device_token(
        self,
        account: str | None = DEFAULT_ACCOUNT,
        device: str = "device-1",
        *,
        expires_in_s: float | None = 86_400,
        **extra: Any,
    ) -> str:
        """Makes a device token (DevAuthN)."""
        return self._service.mint.device(account=account, device=device, exp=self._exp(expires_in_s), extra=extra)

    def revoke_tokens(self, account: str | None = None) -> None:
        """Revokes all existing content and device tokens of one account, or of all accounts. Tokens that are made later
        are valid."""
        self._service.revoke(account)

    def register_device(self, device: str, account: str = DEFAULT_ACCOUNT) -> None:
        """Registers a device for an account. The head-end then refuses tokens of devices that are not registered."""
        self._service.accounts.register(device, account)

    def unregister_device(self, device: str) -> None:
        """Removes a device."""
        self._service.accounts.unregister(device)

    def grant_rights(
        self, account: str, *content_ids: str, max_sessions: int | None = None, session_control: bool = True
    ) -> None:
        """Sets the rights of the devices of an account. Device tokens contain no rights, so the head-end keeps the
        rights for the account.

        Args:
            account: the account.
            content_ids: the contents whose keys the account may get; None: all contents.
            max_sessions: the account's limit of concurrent streams; None: ``config.limit``.
            session_control: whether the account's licences need a session.
        """
        rights = AccountRights(frozenset(content_ids) if content_ids else None, max_sessions, session_control)
        self._service.accounts.grant(account, rights)

    def operator_token(self, *, expires_in_s: float | None = 86_400) -> str:
        """Makes a token for operator calls (AuthN)."""
        return self._service.mint.operator(exp=self._exp(expires_in_s))

    def _exp(self, expires_in_s: float | None) -> int | None:
        return None if expires_in_s is None else int(self.now_ms / 1000 + expires_in_s)

    def add_key(self, kid: bytes, key: bytes, content_id: str | None = None) -> None:
        """Adds a content key, for one content (which may have several keys) or for all contents. Key id and key have 16
        bytes each."""
        self.keys.add(kid, key, content_id)

    def add_media(self, media_json: Path | str) -> list[Content]:
        """Adds the keys in a ``media.json``, each to its content. Returns the contents.

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
        content_id: str = DEFAULT_CONTENT_ID,
        *,
        kid: bytes | None = None,
        expires_in_s: float | None = None,
        uses: int | None = None,
        cookie: str | None = None,
        device: bytes | None = None,
    ) -> str:
        """Makes an ExpressPlay token, as an operator's back end would get it from ExpressPlay.

        Args:
            content_id: the content; its keys are those that were added with this content id.
            kid: the only key for which the token is valid; None: every key of the content.
            expires_in_s: the lifetime of the token in seconds on the head-end's clock; None: the lifetime of
                ``config.expressplay``.
            uses: number of licences; None: the number of ``config.expressplay``.
            cookie: the cookie under which the head-end registers the device that uses the token; None: no registration.
            device: the only device for which the token is valid; None: every device.
        """
        made = self._service.right(
            content_id, kid=kid, expires_in_s=expires_in_s, uses=uses, cookie=cookie, device=device
        )
        return self._service.rights.issue(made)

    def rights_token_url(self, content_id: str = DEFAULT_CONTENT_ID, **arguments: Any) -> str:
        """Returns the licence URL with a new token in it. The arguments are those of ``rights_token``."""
        return (
            f"{self._service.tenant_url}/hms/fp/rights/?ExpressPlayToken={self.rights_token(content_id, **arguments)}"
        )

    def deny(self, content_id: str, text: str = "not in your package", error: int = 1) -> None:
        """Makes the entitlement server deny a content. The denial has an error number and a text for the viewer."""
        self._service.rights.deny(content_id, error, text)

    def allow(self, content_id: str) -> None:
        """Undoes ``deny``."""
        self._service.rights.allow(content_id)

    def registered_device(self, cookie: str) -> bytes | None:
        """Returns the device that is registered under a cookie, or None."""
        return self._service.rights.device(cookie)
