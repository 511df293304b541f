"""Decides which clients may control the head-end: programs and the head-end's page, but no other web page.

If the head-end does not listen on loopback, these clients must also send the control token.

A browser on the tester's machine can connect to loopback. So any web page in this browser could send requests to the
head-end. Browsers name the site that sends a request in the headers ``Origin`` and ``Sec-Fetch-Site``, so the head-end
can refuse these requests. Programs do not send these headers; the head-end accepts requests without them.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from aiohttp import web

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The headers in every reply of the control endpoints and of the page."""


COOKIE = "usher_control"
"""The cookie in which a browser stores the control token, so that the requests of the page carry this token."""


def needs_token(listens_on: str) -> bool:
    """Whether other machines can connect to this address. If so, the control endpoints need a token."""
    return not _loopback(listens_on)


def why_refused(request: web.Request, listens_on: str, names: Collection[str] = ()) -> str | None:
    """Returns the reason to refuse a request to the page or the control endpoints; None if the request is allowed.

    Args:
        request: the request.
        listens_on: the address on which the head-end listens.
        names: further names of the head-end. Any other name in ``Host`` may belong to an attacker whose name server
            answers with the address of this machine (DNS rebinding). An IP address in ``Host`` cannot be such a name.
    """
    host = request.headers.get("Host", "")
    if not _known(_hostname(host), listens_on, names):
        return f"{_hostname(host)!r} is not a name of the head-end; the setting host_names adds names"
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        return "the request comes from a page of another origin"
    follows_a_link = request.method in ("GET", "HEAD") and request.headers.get("Sec-Fetch-Mode") == "navigate"
    if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none") and not follows_a_link:
        return "the request comes from a page of another site"
    return None


def has_token(request: web.Request, token: str | None, *, in_query: bool) -> bool:
    """Whether a request carries the control token: as a bearer token, in the cookie, or in the query of the URL."""
    if token is None:
        return True
    kind, _, bearer = request.headers.get("Authorization", "").partition(" ")
    given = [request.cookies.get(COOKIE, "")]
    if kind.lower() == "bearer":
        given.append(bearer.strip())
    if in_query:
        given.append(request.query.get("token", ""))
    sent = (text.encode("utf-8", "surrogateescape") for text in given)
    return any(hmac.compare_digest(text, token.encode()) for text in sent)


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return host


def _known(name: str, listens_on: str, names: Collection[str]) -> bool:
    known = {"", listens_on.lower(), *(other.lower() for other in names)}
    return name in known or _loopback(name) or _is_address(name)


def _loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return _is_address(name) and ipaddress.ip_address(name).is_loopback


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
