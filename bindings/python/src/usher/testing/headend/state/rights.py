"""ExpressPlay rights tokens and SEES entitlements. Both say which licences a client may get."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from types import MappingProxyType

from ..clock import Clock
from ..knobs import ExpressPlayErrors
from ..network.replies import Reply, json_reply

TOKEN_EXPIRED = -2002
CONTENT_KEY = -2005
COOKIE = -2033
DEVICE_AUTHENTICATION = -4001
TOKEN_INVALID = -4010
KEY_ID = -4018
CKC_FAILED = -6004
DEVICE_BINDING = -6008

MESSAGES: Mapping[int, str] = MappingProxyType(
    {
        TOKEN_EXPIRED: "token has expired",
        CONTENT_KEY: "no content key",
        COOKIE: "cookie is not valid",
        DEVICE_AUTHENTICATION: "licence is bound to another device",
        TOKEN_INVALID: "token is not valid",
        KEY_ID: "key id is not of the token's content",
        CKC_FAILED: "CKC generation failed",
        DEVICE_BINDING: "device binding is not supported",
    }
)
"""For each error number, its text (source: ExpressPlay licence request)."""


class RightsRefusal(Exception):
    """Raised when the head-end refuses a licence or an entitlement.

    Args:
        number: an error number.
        text: one line; if empty, the table's text for the number.
    """

    def __init__(self, number: int, text: str = "") -> None:
        super().__init__(text or MESSAGES.get(number, "request refused"))
        self.number = number


def error_reply(number: int, text: str, style: ExpressPlayErrors, *, status: int = 400) -> Reply:
    """Makes an error reply in ExpressPlay's form: a web page or JSON."""
    if style == "html":
        title = f"Error {number}"
        body = f"<body><h1>{title}</h1><p>{escape(text, quote=False)}</p></body>"
        page = f"<html><head><title>{title}</title></head>{body}</html>\n"
        return Reply(status, page.encode(), "text/html; charset=utf-8")
    names = {
        "json": ("errorCode", "errorMessage"),
        "json-short": ("code", "message"),
        "json-error": ("error", "message"),
    }[style]
    return json_reply(dict(zip(names, (number, text), strict=True)), status)


@dataclass(frozen=True, slots=True)
class Right:
    """The right that a token grants.

    Attributes:
        content_id: the content.
        kid: the key id for which the right is valid; None: the key id in the SPC.
        expires_ms: the time from which on the right has expired, in ms.
        uses: how many more licences a client may get with the token; None: any number.
        cookie: the cookie under which a licence request registers the device; None: no registration.
        device: the only device that may use the right; None: every device.
    """

    content_id: str
    kid: bytes | None
    expires_ms: int
    uses: int | None
    cookie: str | None
    device: bytes | None


class RightsLedger:
    """The tokens that were made, the registered devices, and the denied contents. Any thread may call any method."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rights: dict[str, Right] = {}
        self._devices: dict[str, bytes] = {}
        self._denied: dict[str, tuple[int, str]] = {}

    def issue(self, right: Right) -> str:
        """Stores a right and returns a new token for it, as URL-safe text."""
        token = secrets.token_urlsafe(96)
        with self._lock:
            self._rights[token] = right
        return token

    def check(self, token: str | None) -> Right:
        """Returns the right of a token.

        Raises:
            RightsRefusal: the token is missing, unknown, expired or used up.
        """
        with self._lock:
            right = self._rights.get(token or "")
        if right is None:
            raise RightsRefusal(TOKEN_INVALID, "token is missing" if not token else "")
        if right.uses == 0:
            raise RightsRefusal(TOKEN_INVALID, "token has been used")
        if self._clock.now_ms() >= right.expires_ms:
            raise RightsRefusal(TOKEN_EXPIRED)
        return right

    def redeem(self, token: str, device: bytes | None) -> None:
        """Counts a licence that a client got with the token, and registers the device if the token has a cookie."""
        with self._lock:
            right = self._rights[token]
            if right.uses is not None:
                self._rights[token] = replace(right, uses=right.uses - 1)
            if right.cookie is not None and device is not None:
                self._devices[right.cookie] = device

    def device(self, cookie: str) -> bytes | None:
        """Returns the device that is registered under a cookie, or None."""
        with self._lock:
            return self._devices.get(cookie)

    def deny(self, content_id: str, number: int, text: str) -> None:
        """Denies entitlement to a content."""
        with self._lock:
            self._denied[content_id] = (number, text)

    def allow(self, content_id: str) -> None:
        """Removes a denial."""
        with self._lock:
            self._denied.pop(content_id, None)

    def check_entitled(self, content_id: str) -> None:
        """Checks that a content is not denied.

        Raises:
            RightsRefusal: the content is denied; the exception has the number and text of the denial.
        """
        with self._lock:
            denied = self._denied.get(content_id)
        if denied is not None:
            raise RightsRefusal(*denied)
