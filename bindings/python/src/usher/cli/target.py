"""The head-end that a command tests: its URLs and tokens, and the options that give them."""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .exits import CommandError
from .spc import SpcForm, form
from .wire.exchange import Headers

KEY_SYSTEMS = ("clearkey", "fairplay", "widevine", "playready")
_LOOPBACK = re.compile(r"^(localhost|127\.\d+\.\d+\.\d+|::1)$")


@dataclass(frozen=True)
class Target:
    """A head-end.

    Attributes:
        ssm: the URL of the session manager; None if there is none.
        license: the URL of the licence server; None if no licence is requested.
        certificate: the URL of the certificate; None if there is none to request.
        v2: whether the licence request opens the session (SSP V2).
        tokens: the content tokens; the first is that of the account to test.
        payload: the licence request of a CDM, as bytes; None: Clear Key with ``key_ids``.
        append_version: ``auto``, ``always`` or ``never``: whether "/v1" follows the URL of the session manager.
        limit: how many sessions an account may have; None: not known.
        key_server: the URL of a FairPlay key server; None if no key is requested from it.
        spc_form: the form in which the key server takes the SPC.
        response_path: the member of a JSON reply of the key server that has the CKC, as names with dots between them;
            None: ``CkcMessage``, ``ckc`` or ``License``.
        entitlement: the URL of an entitlement server; None if it is not asked.
        content_id: the content for which the entitlement server is asked, or that the key server gets in a field.
        control: the URL of the control endpoints of a reference head-end with a manual clock.
    """

    ssm: str | None = field(repr=False)
    license: str | None = field(repr=False)
    certificate: str | None = field(repr=False)
    v2: bool
    tokens: tuple[str, ...] = field(repr=False)
    token_header: str = field(repr=False)
    headers: Headers = field(repr=False)
    key_system: str = field(repr=False)
    key_ids: tuple[bytes, ...] = field(repr=False)
    payload: bytes | None = field(repr=False)
    ca_file: str | None = field(repr=False)
    allow_http: bool
    append_version: str = field(repr=False)
    limit_s: float
    limit: int | None = None
    key_server: str | None = field(default=None, repr=False)
    spc_form: SpcForm = field(default_factory=SpcForm)
    response_path: str | None = field(default=None, repr=False)
    entitlement: str | None = field(default=None, repr=False)
    content_id: str | None = field(default=None, repr=False)
    control: str | None = field(default=None, repr=False)

    @property
    def token(self) -> str:
        """The content token of the account to test; "" if there is none."""
        return self.tokens[0] if self.tokens else ""

    @property
    def has_sessions(self) -> bool:
        """Whether there is a server that sets sessions up."""
        return self.ssm is not None or self.v2

    @property
    def asks_license(self) -> bool:
        """Whether a licence can be requested."""
        return self.license is not None and (self.payload is not None or bool(self.key_ids))

    def session_url(self, call: str) -> str:
        """Returns the URL of a call to the session manager, ``setup``, ``heartbeat`` or ``teardown``
        (protocol.md: The session)."""
        address, _, query = (self.ssm or "").partition("?")
        address = address.rstrip("/")
        has_version = re.search(r"/v\d+$", address) is not None
        if self.append_version == "always" or (self.append_version == "auto" and not has_version):
            address += "/v1"
        return f"{address}/sessions/{call}" + (f"?{query}" if query else "")


def add_arguments(parser: argparse.ArgumentParser, about_url: str) -> None:
    """Adds the options that describe a head-end. `about_url`: the text about the argument URL."""
    parser.add_argument("url", metavar="URL", nargs="?", help=about_url)
    target = parser.add_argument_group("the head-end")
    target.add_argument(
        "--license", metavar="URL", help="the licence server; without this option the command requests no licence"
    )
    target.add_argument("--certificate", metavar="URL", help="the server of the FairPlay application certificate")
    target.add_argument("--v2", action="store_true", help="SSP V2: the licence request opens the session")
    target.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file with the content token of a test account, one line of text; - reads it from stdin",
    )
    target.add_argument(
        "--token-header", metavar="NAME", default="nv-authorizations", help="the header with the tokens (%(default)s)"
    )
    target.add_argument(
        "--header",
        metavar="LINE",
        action="append",
        default=[],
        help='a further header for each request, "Name: value"; repeat for more',
    )
    target.add_argument(
        "--key-system", choices=KEY_SYSTEMS, default="clearkey", help="the DRM of the licence request (%(default)s)"
    )
    target.add_argument(
        "--key-id",
        metavar="ID",
        action="append",
        default=[],
        help="a key id for a Clear Key licence: 32 hex digits, a UUID, or base64url as in Clear Key's JSON; repeat for "
        "more",
    )
    target.add_argument(
        "--payload",
        metavar="FILE",
        help="a licence request that a CDM has made, such as an SPC; by default a Clear Key request for --key-id",
    )
    target.add_argument("--ca-file", metavar="FILE", help="the certificate authorities to trust, as PEM")
    target.add_argument(
        "--allow-http", action="store_true", help="allow http URLs to other machines; http does not encrypt the tokens"
    )
    target.add_argument(
        "--append-version",
        choices=["auto", "always", "never"],
        default="auto",
        help="whether the command appends /v1 to URL: only if URL does not end with a version (auto), always or never",
    )
    target.add_argument(
        "--timeout",
        metavar="S",
        type=float,
        default=10.0,
        help="the time limit for each request, in seconds (%(default)g)",
    )
    target.add_argument(
        "--control",
        metavar="URL",
        help="the control endpoints of a reference head-end with a manual clock; the command moves this clock instead "
        "of waiting",
    )
    target.add_argument(
        "--ready-file",
        metavar="FILE",
        help="take URLs and token from the file that `usher headend --ready-file` has written",
    )


def target(options: argparse.Namespace, *, needs_sessions: bool = True) -> Target:
    """Makes the target from the options.

    Args:
        needs_sessions: whether the command needs a server that sets sessions up.

    Raises:
        CommandError: an option is missing or wrong, or a file cannot be read.
    """
    ready = ready_file(options.ready_file) if options.ready_file else {}
    api = "license_urls_v2" if options.v2 else "license_urls"
    made = Target(
        ssm=options.url or ready.get("ssm_url"),
        license=options.license or ready.get(api, {}).get(options.key_system),
        certificate=options.certificate or ready.get("certificate_urls", {}).get(options.key_system),
        v2=options.v2,
        tokens=_tokens(options.token_file) if options.token_file else tuple(ready.get("tokens", {}).values()),
        token_header=options.token_header,
        headers=tuple(map(_header, options.header)),
        key_system=options.key_system,
        key_ids=tuple(map(_key_id, options.key_id or ready.get("key_ids", [])[:1])),
        payload=_read(options.payload, "--payload") if options.payload else None,
        ca_file=options.ca_file or ready.get("ca_file"),
        allow_http=options.allow_http,
        append_version=options.append_version,
        limit_s=options.timeout,
        limit=ready.get("limit"),
        key_server=getattr(options, "key_server", None),
        spc_form=form(options) if "request_format" in options else SpcForm(),
        response_path=getattr(options, "response_path", None),
        entitlement=getattr(options, "entitlement", None),
        content_id=getattr(options, "content_id", None),
        control=options.control or (ready.get("control_url") if ready.get("clock") == "manual" else None),
    )
    _check(made, needs_sessions)
    return made


def _check(made: Target, needs_sessions: bool) -> None:
    if needs_sessions and not made.has_sessions:
        raise CommandError("give the URL of the session manager, or --v2 with --license; --ready-file has both")
    if not (made.ssm or made.license or made.certificate or made.key_server or made.entitlement):
        raise CommandError("give the URL of a server: the session manager, --license, --key-server or --ready-file")
    if made.has_sessions and not made.tokens:
        raise CommandError("--token-file is missing: a file with the content token of an account for tests")
    if made.v2 and not made.asks_license:
        raise CommandError("--v2 needs a licence request: give --license, and --key-id or --payload")
    if made.payload is None and made.key_system != "clearkey" and made.license and not made.key_ids:
        raise CommandError(f"--key-system {made.key_system} needs --payload, a licence request of its CDM")
    if made.limit_s <= 0:
        raise CommandError("--timeout: give a number of seconds greater than 0")
    if made.ca_file is not None:
        _read(made.ca_file, "--ca-file")
    if (made.key_server or made.entitlement) and (made.payload is None or made.key_system != "fairplay"):
        raise CommandError("--key-server and --entitlement need --key-system fairplay and --payload, an SPC")
    if made.entitlement is not None and made.content_id is None:
        raise CommandError("--entitlement needs --content-id")
    if made.content_id is not None and made.entitlement is None and made.spc_form.content_field is None:
        raise CommandError("--content-id needs --entitlement, or --content-id-field")
    if made.license and not made.has_sessions and not made.asks_license:
        raise CommandError("--license needs --key-id or --payload")
    made.spc_form.check(made.key_server is not None, made.content_id)
    for name, url in (
        ("URL", made.ssm),
        ("--license", made.license),
        ("--certificate", made.certificate),
        ("--key-server", made.key_server),
        ("--entitlement", made.entitlement),
    ):
        if url is not None:
            check_url(name, url, made.allow_http)


def check_url(name: str, url: str, allow_http: bool) -> None:
    """Raises CommandError if the library does not take this URL, or if requests to it would send tokens in clear."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise CommandError(f"{name}: {url} is no URL: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise CommandError(f"{name}: {url} is no URL: it begins with https://HOST/ or http://HOST/")
    if "@" in parts.netloc:
        raise CommandError(f"{name}: leave out user and password; the library refuses them")
    if parts.scheme == "http" and not allow_http and not _LOOPBACK.match(host):
        raise CommandError(f"{name}: plain http to {host} sends the tokens in clear: use https, or --allow-http")


def _read(path: str, option: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CommandError(f"{option}: {path}: {error.strerror}") from error


def _tokens(path: str) -> tuple[str, ...]:
    """Returns the content tokens in a file, one a line. Ignores blanks and line breaks at the ends of a line, and empty
    lines."""
    content = sys.stdin.buffer.read() if path == "-" else _read(path, "--token-file")
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise CommandError(f"--token-file: {path} is not text") from error
    found = tuple(line.strip() for line in lines if line.strip())
    if not found:
        raise CommandError(f"--token-file: {path} is empty")
    for token in found:
        if not all(" " <= character <= "~" or character == "\t" for character in token):
            raise CommandError(f"--token-file: {path} has a character that an HTTP header cannot have")
    return found


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(r"[\r\n\0]", value):
        raise CommandError(f'--header: "{name}…" is no header: give "Name: value"')
    return name, value.strip()


def _key_id(text: str) -> bytes:
    """Returns the bytes of a key id. The text is hexadecimal digits, a UUID, or base64url as in W3C Clear Key."""
    is_base64 = len(text.rstrip("=")) == 22
    try:
        found = base64.urlsafe_b64decode(f"{text.rstrip('=')}==") if is_base64 else bytes.fromhex(text.replace("-", ""))
    except ValueError:
        found = b""
    if len(found) != 16:
        raise CommandError(f"--key-id: {text} is no key id: give 32 hex digits, a UUID, or base64url")
    return found


def ready_file(path: str) -> dict[str, Any]:
    """Returns the contents of the ready file of a reference head-end. Raises CommandError."""
    try:
        found = json.loads(_read(path, "--ready-file"))
    except ValueError as error:
        raise CommandError(f"--ready-file: {path} is not JSON: {error}") from error
    if not isinstance(found, dict) or "ssm_url" not in found:
        raise CommandError(f"--ready-file: {path} is no ready file of `usher headend`")
    return found
