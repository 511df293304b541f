"""A reference head-end for the SSM v1 session protocol and its licence services.

It runs inside a test or as the program ``usher-headend``. Its journal has every request of the players, and its session
table has every session. The test controls the head-end's clock, faults and limits.

    with HeadEnd(clock="manual", limit=1) as he:
        player.play(ssm_url=he.ssm_url, token=he.content_token())
        assert he.journal.routes() == ["setup", "license"]
        he.advance(60_000)
        he.assert_clean()

All keys, certificates and licences are only for tests; they decrypt no real content.

If a docstring in this package has "(source: X)", the public documentation of an operator or of a player SDK describes
X.
"""

from __future__ import annotations

try:
    from .clock import Clock, ManualClock, SystemClock
    from .codes import CodeTable, Problem
    from .config import KEY_SYSTEMS, Api, HeadEndConfig, KeySystem
    from .fixtures import ckc, playready_license, service_certificate, widevine_license
    from .knobs import REQUEST_FORMS, V2, Certificate, ExpressPlay, Fps, RequestForm, Sees
    from .network.faults import Fault
    from .network.script import FaultScript, Scripted
    from .oracle.checker import Violation, ViolationKind
    from .oracle.journal import ROUTES, Entry, Journal, Outcome
    from .routes.fps_wire import KeyRequest, read_key_request
    from .server import HeadEnd
    from .state.sessions import Account, Session, SessionState, SessionTable
    from .state.tokens import Authorization, TokenPart
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] == "usher":
        raise
    words = f"the head-end needs the package {error.name}, which is not installed: pip install 'libusher[headend]'"
    raise ModuleNotFoundError(words, name=error.name) from error

__all__ = [
    "KEY_SYSTEMS",
    "REQUEST_FORMS",
    "ROUTES",
    "Account",
    "Api",
    "Authorization",
    "Certificate",
    "Clock",
    "CodeTable",
    "Entry",
    "ExpressPlay",
    "Fault",
    "FaultScript",
    "Fps",
    "HeadEnd",
    "HeadEndConfig",
    "Journal",
    "KeyRequest",
    "KeySystem",
    "ManualClock",
    "Outcome",
    "Problem",
    "RequestForm",
    "Scripted",
    "Sees",
    "Session",
    "SessionState",
    "SessionTable",
    "SystemClock",
    "TokenPart",
    "V2",
    "Violation",
    "ViolationKind",
    "ckc",
    "playready_license",
    "read_key_request",
    "service_certificate",
    "widevine_license",
]
