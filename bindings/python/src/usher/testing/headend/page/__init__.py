"""The head-end's page: one HTML document that needs nothing else, and the policy it is served under.

Style and script are strings of this package, not files, so that they are there however it is installed.
The page is the same for everyone; what it shows comes by ``/_control/events`` and is only ever set as
text, which its policy enforces too (Trusted Types with no policy at all).
"""

from __future__ import annotations

import base64
import hashlib

from .markup import ICON_SVG, MARKUP
from .script import SCRIPT
from .style import STYLE


def _source(text: str) -> str:
    """The Content-Security-Policy source of one inline element."""
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
