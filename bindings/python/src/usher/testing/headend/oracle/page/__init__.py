"""The head-end's page: one HTML document, which needs no other files, and its Content-Security-Policy.

Style and script are strings in Python modules, not files, so that every form of installation has them. The document
never changes: the script gets the data from ``/_control/events``, and inserts them only as text, never as HTML. The
Content-Security-Policy enforces this: it requires Trusted Types and allows no Trusted Types policy.
"""

from __future__ import annotations

import base64
import hashlib

from .markup import ICON_SVG, MARKUP
from .script import SCRIPT
from .style import STYLE


def _source(text: str) -> str:
    """Returns the source expression (a hash) with which the Content-Security-Policy allows one inline element."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _page() -> bytes:
    icon = "data:image/svg+xml;base64," + base64.b64encode(ICON_SVG.encode()).decode("ascii")
    page = MARKUP
    for mark, text in (("@ICON@", icon), ("@STYLE@", STYLE), ("@SCRIPT@", SCRIPT)):
        page = page.replace(mark, text)
    return page.encode()


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_source(SCRIPT)}",
        f"style-src {_source(STYLE)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Cross-Origin-Opener-Policy": "same-origin"}
HTML = _page()
ICON = ICON_SVG.encode()
