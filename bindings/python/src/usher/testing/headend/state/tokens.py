"""Makes, reads and checks tokens.

A token is a compact JSON web token, signed with HS256 (source: tokens, general). Its claim ``typ`` says which kind of
token it is; this is not the header field ``typ``. Only a content key token is different: it is an encrypted JWE of five
parts. The authorisation header has the content token, the content key token and the session token in this order,
separated by commas.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from ..codes import Problem, Refusal
from ..config import TokenForm

TokenKind = Literal["content", "key", "session", "device", "operator", "unknown"]

_KIND_OF_TYP: dict[str, TokenKind] = {
    "ContentAuthZ": "content",
    "SSMSession": "session",
    "DevAuthN": "device",
    "AuthN": "operator",
}
_LETTER: dict[TokenKind, str] = {
    "content": "C",
    "key": "K",
    "session": "S",
    "device": "D",
    "operator": "O",
    "unknown": "?",
}


def b64url(data: bytes) -> str:
    """Returns data as URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def unb64url(text: str) -> bytes:
    """Returns the bytes of URL-safe base64, padded or not.

    Raises:
        ValueError: characters outside the alphabet, or an impossible length.
    """
    try:
        raw = text.rstrip("=").encode("ascii")
        return base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"not URL-safe base64: {error}") from error


@dataclass(frozen=True, slots=True)
class TokenPart:
    """One comma-separated part of an authorisation header.

    Attributes:
        raw: the part as sent, without spaces at its beginning and end.
        kind: the kind of token, from its claim ``typ``; "key" if the token has the form of a JWE: five pieces between
            dots, of which the second is empty.
        claims: the payload, empty if it cannot be read.
        signed: whether the HS256 signature is valid for the head-end's key.
        spaced: whether there is a space between the part and a comma.
    """

    raw: str = field(repr=False)
    kind: TokenKind
    claims: Mapping[str, Any] = field(repr=False)
    signed: bool
    spaced: bool

    @property
    def jti(self) -> str | None:
        """The ``jti`` claim, None without one; in a session token it is the id of the session."""
        value = self.claims.get("jti")
        return value if isinstance(value, str) else None

    @property
    def seq(self) -> int | None:
        """The ``seq`` claim of a session token: the token of set-up has 1, and each further token has one more. None
        for other tokens."""
        value = self.claims.get("seq")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def generation(self) -> int:
        """The ``gen`` claim of a content or device token; 0 if the token has none."""
        value = self.claims.get("gen", 0)
        return value if isinstance(value, int) else 0

    @property
    def short(self) -> str:
        """The token's short name for logs, such as ``S:3f2a…#2``: its kind, the start of its id, and its sequence
        number."""
        return shorten(self.kind, self.jti or hashlib.sha256(self.raw.encode()).hexdigest(), self.seq)

    @property
    def account(self) -> str | None:
        """The owner of a content, device or session token: its account; if it names no account, its device. If a
        content token names neither, the owner is a name made from a hash of the token. None: a device or session token
        names neither, or the token is of another kind."""
        if self.kind == "content":
            device = self.claims.get("device")
            device = device if isinstance(device, Mapping) else {}
            for key in ("accountId", "deviceId", "deviceUniqueId"):
                if isinstance(device.get(key), str):
                    return str(device[key])
            return "token:" + hashlib.sha256(self.raw.encode()).hexdigest()[:16]
        if self.kind in ("device", "session"):
            for key in ("accountId", "deviceId"):
                if isinstance(self.claims.get(key), str):
                    return str(self.claims[key])
        return None

    @property
    def device(self) -> str | None:
        """The device that the token names, or None."""
        source: Any = self.claims.get("device") if self.kind == "content" else self.claims
        if not isinstance(source, Mapping):
            return None
        for key in ("deviceId", "deviceUniqueId"):
            if isinstance(source.get(key), str):
                return str(source[key])
        return None

    @property
    def rights(self) -> list[Mapping[str, Any]]:
        """The ``contentRights`` entries that are objects."""
        rights = self.claims.get("contentRights")
        return [right for right in rights if isinstance(right, Mapping)] if isinstance(rights, list) else []

    @property
    def content_ids(self) -> tuple[str, ...]:
        """The content ids in the rights of the token."""
        return tuple(str(right["contentId"]) for right in self.rights if isinstance(right.get("contentId"), str))

    @property
    def key_ids(self) -> frozenset[bytes]:
        """The ``defaultKcIds`` (key ids) in the rights of the token, 16 bytes each."""
        found: set[bytes] = set()
        for right in self.rights:
            for text in right.get("defaultKcIds") or []:
                try:
                    found.add(uuid.UUID(str(text)).bytes)
                except ValueError as error:
                    raise Refusal(Problem.BAD_KEY_ID, f"defaultKcIds: {text!r} is not a UUID") from error
        return frozenset(found)

    @property
    def session_control(self) -> bool:
        """Whether session control is switched on in a right of the token."""
        return any(control.get("sessionControlEnabled") is True for control in self._controls())

    @property
    def max_sessions(self) -> int | None:
        """The smallest ``maxSessions`` of the token's rights; None if no right has one."""
        limits = [control.get("maxSessions") for control in self._controls()]
        return min((n for n in limits if isinstance(n, int) and not isinstance(n, bool)), default=None)

    def _controls(self) -> list[Mapping[str, Any]]:
        controls = [right.get("sessionControl") for right in self.rights]
        return [control for control in controls if isinstance(control, Mapping)]


def shorten(kind: TokenKind, ident: str, seq: int | None) -> str:
    """Returns the short name of a token, such as ``S:3f2a…#2``."""
    return f"{_LETTER[kind]}:{ident[:4]}…" + (f"#{seq}" if seq is not None else "")


@dataclass(frozen=True, slots=True)
class Authorization:
    """The authorisation header of one request, read but not checked.

    Attributes:
        parts: its parts in order; empty if the header is missing or empty.
        lines: how many authorisation header lines the request has.
    """

    parts: tuple[TokenPart, ...] = ()
    lines: int = 0

    @property
    def spaced(self) -> bool:
        """Whether there is a space next to a comma."""
        return any(part.spaced for part in self.parts)

    @property
    def session(self) -> TokenPart | None:
        """The session token: the last part, if it is a session token; otherwise None."""
        return self.parts[-1] if self.parts and self.parts[-1].kind == "session" else None

    def all(self, kind: TokenKind) -> tuple[TokenPart, ...]:
        """Returns the parts of one kind."""
        return tuple(part for part in self.parts if part.kind == kind)


class TokenMint:
    """Makes and reads the tokens of one tenant.

    Args:
        key: the HS256 key.
        key_id: ``kid`` of the token header.
        tenant: ``tenantId`` claim.
        form: ``jwt``, or the form of the opaque tokens that are sent in place of JWTs: ``uuid``, ``letters``,
            ``digits``, ``mixed``. Only the object that made an opaque token can read it.

    Attributes:
        key_id: ``kid`` of the token header.
        generation: ``gen`` of content and device tokens made from now on; 0: no such claim.
    """

    def __init__(self, key: bytes, key_id: str, tenant: str, form: TokenForm = "jwt") -> None:
        self._form = form
        self._jwts: dict[str, str] = {}
        self.generation = 0
        self._key = key
        self._tenant = tenant
        self._header = b64url(_json({"alg": "HS256", "typ": "JWT", "kid": key_id}))
        self.key_id = key_id

    def sign(self, claims: Mapping[str, Any], *, key: bytes | None = None) -> str:
        """Makes a signed token with exactly these claims. If ``key`` is set, it is used instead of the head-end's
        signing key."""
        head = f"{self._header}.{b64url(_json(claims))}"
        jwt = f"{head}.{b64url(self._mac(head, key if key is not None else self._key))}"
        if self._form == "jwt":
            return jwt
        token = opaque(hashlib.sha256(jwt.encode()).digest(), self._form)
        self._jwts[token] = jwt
        return token

    def content(
        self,
        *,
        account: str | None,
        content_id: str,
        max_sessions: int | None,
        exp: int | None,
        device: str | None,
        session_control: bool,
        kids: Sequence[bytes],
        jti: str | None,
        key_token: str | None,
        extra: Mapping[str, Any],
        key: bytes | None = None,
    ) -> str:
        """Makes a content token (source: ContentAuthZ payload); ``key_token`` is the name of its key token."""
        control: dict[str, Any] = {"sessionControlEnabled": session_control}
        if max_sessions is not None:
            control["maxSessions"] = max_sessions
        right: dict[str, Any] = {"contentId": content_id, "sessionControl": control}
        if kids:
            right["defaultKcIds"] = [str(uuid.UUID(bytes=kid)) for kid in kids]
        if key_token is not None:
            right["contentKeyToken"] = key_token
        bound: dict[str, Any] = {}
        if account is not None:
            bound["accountId"] = account
        if device is not None:
            bound["deviceId"] = device
        claims: dict[str, Any] = {"typ": "ContentAuthZ", "ver": "1.0", "tenantId": self._tenant}
        claims["contentRights"] = [right]
        if bound:
            claims["device"] = bound
        if exp is not None:
            claims["exp"] = exp
        if jti is not None:
            claims["jti"] = jti
        return self.sign({**claims, **self._dated(), **extra}, key=key)

    def device(self, *, account: str | None, device: str, exp: int | None, extra: Mapping[str, Any]) -> str:
        """Makes a device token, DevAuthN (source: device authentication token)."""
        claims: dict[str, Any] = {"typ": "DevAuthN", "ver": "1.0", "tenantId": self._tenant, "deviceId": device}
        if account is not None:
            claims["accountId"] = account
        if exp is not None:
            claims["exp"] = exp
        return self.sign({**claims, **self._dated(), **extra})

    def _dated(self) -> dict[str, int]:
        return {"gen": self.generation} if self.generation else {}

    def operator(self, *, exp: int | None) -> str:
        """Makes a token for operator calls (AuthN)."""
        claims: dict[str, Any] = {"typ": "AuthN", "ver": "1.0"}
        if exp is not None:
            claims["exp"] = exp
        return self.sign(claims)

    def session(self, *, session: str, seq: int, account: str, device: str | None, exp: int) -> str:
        """Makes a session token; ``seq`` counts the tokens of the session. Clients must not read the contents of this
        token."""
        claims: dict[str, Any] = {"typ": "SSMSession", "ver": "1.0", "tenantId": self._tenant}
        claims |= {"accountId": account, "jti": session, "seq": seq, "exp": exp}
        if device is not None:
            claims["deviceId"] = device
        return self.sign(claims)

    @property
    def key_token_secret(self) -> bytes:
        """Returns the secret that encrypts content key tokens, 32 bytes."""
        return hashlib.sha256(b"content key tokens: " + self._key).digest()

    def read(self, values: Sequence[str], *, strict: bool) -> Authorization:
        """Splits header values at commas, reads every part, and returns the parts. Does not check the tokens.

        Args:
            values: the value of each authorisation header line, in order.
            strict: if False, also removes the percent-encoding that some clients use.
        """
        parts: list[TokenPart] = []
        for value in values:
            if not strict and "%" in value:
                value = unquote(value)
            if value:
                parts += [self._part(text) for text in value.split(",")]
        return Authorization(parts=tuple(parts), lines=len(values))

    def _part(self, text: str) -> TokenPart:
        raw = text.strip(" \t")
        pieces = self._jwts.get(raw, raw).split(".")
        spaced = raw != text
        if len(pieces) == 5 and pieces[1] == "":
            return TokenPart(raw=raw, kind="key", claims={}, signed=False, spaced=spaced)
        claims: Any = None
        signed = False
        if len(pieces) == 3:
            try:
                header, claims = json.loads(unb64url(pieces[0])), json.loads(unb64url(pieces[1]))
                given = unb64url(pieces[2])
            except (ValueError, RecursionError):
                claims = None
            else:
                ours = isinstance(header, dict) and header.get("alg") == "HS256"
                signed = ours and hmac.compare_digest(given, self._mac(f"{pieces[0]}.{pieces[1]}", self._key))
        if not isinstance(claims, dict):
            return TokenPart(raw=raw, kind="unknown", claims={}, signed=False, spaced=spaced)
        kind = _KIND_OF_TYP.get(str(claims.get("typ")), "unknown")
        return TokenPart(raw=raw, kind=kind, claims=claims, signed=signed, spaced=spaced)

    def _mac(self, text: str, key: bytes) -> bytes:
        return hmac.new(key, text.encode("utf-8"), hashlib.sha256).digest()

    def verify(self, part: TokenPart, now_ms: int) -> None:
        """Checks form, signature, expiry and tenant of a signed part.

        Raises:
            Refusal: one of these checks failed; the exception names the first failed check.
        """
        if not part.claims:
            raise Refusal(Problem.TOKEN_MALFORMED)
        if not part.signed:
            raise Refusal(Problem.TOKEN_SIGNATURE)
        exp = part.claims.get("exp")
        if exp is not None:
            if not isinstance(exp, int | float) or isinstance(exp, bool):
                raise Refusal(Problem.TOKEN_EXPIRED, f"exp is not a number of seconds: {exp!r}")
            if now_ms >= exp * 1000:
                raise Refusal(Problem.TOKEN_EXPIRED)
        if part.claims.get("tenantId", self._tenant) != self._tenant:
            raise Refusal(Problem.WRONG_TENANT)


def opaque(seed: bytes, form: TokenForm) -> str:
    """Makes an opaque token from 32 random bytes. The same bytes always make the same token."""
    forms: tuple[TokenForm, ...] = ("uuid", "letters", "digits")
    if form == "mixed":
        form = forms[seed[31] % len(forms)]
    if form == "uuid":
        return str(uuid.UUID(bytes=seed[:16], version=4))
    if form == "letters":
        return "".join(chr(ord("a") + byte % 26) for byte in seed[:12])
    return str(10**12 + int.from_bytes(seed[:16], "big") % (9 * 10**12))


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("utf-8")
