"""Decides which clients may control the head-end: programs and the head-end's page, but no other web page.

A browser on a tester's machine can connect to loopback, so every page in it could send requests to the head-end.
Browsers say from which page a request comes (``Origin``, ``Sec-Fetch-Site``). Programs do not send these headers, and
the head-end accepts requests without them.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from aiohttp import web

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every reply of the control endpoints and the page."""


def why_refused(request: web.Request, listens_on: str) -> str | None:
    """Returns the reason to refuse a request to the page or the control endpoints; None if it is allowed.

    Args:
        request: the request.
        listens_on: the address on which the head-end listens. On loopback, a ``Host`` that is neither an
            address nor ``localhost`` is a name that an attacker resolves to this machine (DNS rebinding).
    """
    host = request.headers.get("Host", "")
    if _loopback(listens_on) and not _local(_hostname(host), listens_on):
        return f"the head-end listens on {listens_on}; {_hostname(host)!r} is not a name of it"
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        return "the request comes from a page of another origin"
    follows_a_link = request.method in ("GET", "HEAD") and request.headers.get("Sec-Fetch-Mode") == "navigate"
    if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none") and not follows_a_link:
        return "the request comes from a page of another site"
    return None


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return host


def _local(name: str, listens_on: str) -> bool:
    return name in ("", listens_on.lower()) or _loopback(name) or _is_address(name)


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
