"""Usher: DRM licences and concurrent-stream (SSM) sessions for any video player.

    from usher import Context, KeySystem, Player, SSPDelegate, clear_key_request

    with Context() as context:
        context.add_observer(print)
        delegate = SSPDelegate(context, license_url=LICENSES, ssm_url=SSM)
        with Player(context) as player, player.play(token, delegate=delegate) as playback:
            keys = playback.get_license(KeySystem.CLEARKEY, clear_key_request([kid])).clear_keys()
            ...                                   # decode; stop when an event says must_stop

``usher.aio`` has the same objects for asyncio. For any other event loop use ``Context(callbacks="pumped")``.

Times are integers in milliseconds. Functions raise subclasses of ``UsherError``. Python loads libusher.so, and checks
its version, when a program first uses one of the names below; ``usher.testing`` works without libusher.so.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import aio as aio
    from ._c.abi import OFF as OFF
    from ._c.enums import AppendVersion as AppendVersion
    from ._c.enums import Callbacks as Callbacks
    from ._c.enums import Clock as Clock
    from ._c.enums import CloseMode as CloseMode
    from ._c.enums import ContentIDRule as ContentIDRule
    from ._c.enums import EventType as EventType
    from ._c.enums import FPSRequest as FPSRequest
    from ._c.enums import FPSResponse as FPSResponse
    from ._c.enums import Guardian as Guardian
    from ._c.enums import HeartbeatMissing as HeartbeatMissing
    from ._c.enums import HeartbeatStart as HeartbeatStart
    from ._c.enums import Hook as Hook
    from ._c.enums import KeepAlive as KeepAlive
    from ._c.enums import KeySystem as KeySystem
    from ._c.enums import LicenseType as LicenseType
    from ._c.enums import LogLevel as LogLevel
    from ._c.enums import NoticeType as NoticeType
    from ._c.enums import Operation as Operation
    from ._c.enums import Origin as Origin
    from ._c.enums import Part as Part
    from ._c.enums import RenewType as RenewType
    from ._c.enums import Resetup as Resetup
    from ._c.enums import Route as Route
    from ._c.enums import SessionState as SessionState
    from ._c.enums import Status as Status
    from ._c.enums import Suspend as Suspend
    from ._c.enums import TLSFault as TLSFault
    from ._c.enums import URLEncode as URLEncode
    from ._c.enums import WireFormat as WireFormat
    from ._c.ffi import explain as explain
    from ._errors import CallbackError as CallbackError
    from ._errors import ClosedError as ClosedError
    from ._errors import DeclinedError as DeclinedError
    from ._errors import Explanation as Explanation
    from ._errors import ForkedError as ForkedError
    from ._errors import FullError as FullError
    from ._errors import HTTPStatusError as HTTPStatusError
    from ._errors import InvalidArgumentError as InvalidArgumentError
    from ._errors import InvalidCompletionError as InvalidCompletionError
    from ._errors import InvalidHandleError as InvalidHandleError
    from ._errors import LegacyCodes as LegacyCodes
    from ._errors import LimitError as LimitError
    from ._errors import NoDelegateError as NoDelegateError
    from ._errors import NotAllowedError as NotAllowedError
    from ._errors import NoTokenError as NoTokenError
    from ._errors import ProtocolError as ProtocolError
    from ._errors import RedirectError as RedirectError
    from ._errors import RefusedError as RefusedError
    from ._errors import RenewalMissedError as RenewalMissedError
    from ._errors import ReplacedError as ReplacedError
    from ._errors import ResourceError as ResourceError
    from ._errors import SessionError as SessionError
    from ._errors import StateError as StateError
    from ._errors import TLSError as TLSError
    from ._errors import TooLargeError as TooLargeError
    from ._errors import TransportError as TransportError
    from ._errors import UsherError as UsherError
    from ._errors import UsherTimeoutError as UsherTimeoutError
    from ._errors import WouldDeadlockError as WouldDeadlockError
    from ._loads import LoadingRequest as LoadingRequest
    from ._options import ContextOptions as ContextOptions
    from ._options import CustomerOptions as CustomerOptions
    from ._options import DefaultOptions as DefaultOptions
    from ._options import LoaderOptions as LoaderOptions
    from ._options import MultiInstanceOptions as MultiInstanceOptions
    from ._options import SSPOptions as SSPOptions
    from ._options import SSPV2Options as SSPV2Options
    from ._question import LATER as LATER
    from .content import FileProtection as FileProtection
    from .content import Protection as Protection
    from .content import content_id as content_id
    from .content import read_dash_protection as read_dash_protection
    from .content import read_hls_keys as read_hls_keys
    from .content import read_mp4 as read_mp4
    from .content import read_pssh as read_pssh
    from .content import read_tenc as read_tenc
    from .content import rewrite_hls_keys as rewrite_hls_keys
    from .context import Context as Context
    from .context import Observer as Observer
    from .context import Pending as Pending
    from .delegates.base import Delegate as Delegate
    from .delegates.base import TokenRequest as TokenRequest
    from .delegates.customer import CustomerDelegate as CustomerDelegate
    from .delegates.customer import CustomerRequest as CustomerRequest
    from .delegates.customer import LicenseResponse as LicenseResponse
    from .delegates.customer import SessionCall as SessionCall
    from .delegates.default import CommonDelegate as CommonDelegate
    from .delegates.default import DefaultDelegate as DefaultDelegate
    from .delegates.hooks import HookCall as HookCall
    from .delegates.hooks import HTTPDelegate as HTTPDelegate
    from .delegates.multi_instance import MultiInstanceDelegate as MultiInstanceDelegate
    from .delegates.multi_instance import TokenMap as TokenMap
    from .delegates.ssp import SSPDelegate as SSPDelegate
    from .delegates.ssp import SSPV2Delegate as SSPV2Delegate
    from .event import Event as Event
    from .event import Notice as Notice
    from .license import License as License
    from .license import clear_key_request as clear_key_request
    from .loader import ResourceLoader as ResourceLoader
    from .loader import ServerRequest as ServerRequest
    from .loader import SPCRequest as SPCRequest
    from .metrics import Metrics as Metrics
    from .playback import PayloadRequest as PayloadRequest
    from .playback import Playback as Playback
    from .player import Player as Player

__version__ = "0.1.0"

_HOME = {
    "_c.abi": "OFF",
    "_c.enums": "AppendVersion Callbacks Clock CloseMode ContentIDRule EventType FPSRequest FPSResponse Guardian "
    "HeartbeatMissing HeartbeatStart Hook KeepAlive KeySystem LicenseType LogLevel NoticeType Operation Origin Part "
    "RenewType Resetup Route SessionState Status Suspend TLSFault TokenKind URLEncode WireFormat",
    "_errors": "CallbackError ClosedError DeclinedError Explanation ForkedError FullError HTTPStatusError "
    "InvalidArgumentError InvalidCompletionError InvalidHandleError LegacyCodes LimitError NoDelegateError "
    "NoTokenError NotAllowedError ProtocolError RedirectError RefusedError RenewalMissedError ReplacedError "
    "ResourceError SessionError StateError TLSError TooLargeError TransportError UsherError UsherTimeoutError "
    "WouldDeadlockError",
    "_c.ffi": "explain",
    "_loads": "LoadingRequest",
    "_options": "ContextOptions CustomerOptions DefaultOptions LoaderOptions MultiInstanceOptions SSPOptions "
    "SSPV2Options",
    "_question": "LATER",
    "content": "FileProtection Protection content_id read_dash_protection read_hls_keys read_mp4 read_pssh read_tenc "
    "rewrite_hls_keys",
    "context": "Context Observer Pending",
    "delegates.customer": "CustomerDelegate CustomerRequest LicenseResponse SessionCall",
    "delegates.default": "CommonDelegate DefaultDelegate",
    "delegates.base": "Delegate TokenRequest",
    "event": "Event Notice",
    "delegates.hooks": "HTTPDelegate HookCall",
    "license": "License clear_key_request",
    "loader": "ResourceLoader SPCRequest ServerRequest",
    "metrics": "Metrics",
    "playback": "PayloadRequest Playback",
    "player": "Player",
    "delegates.ssp": "SSPDelegate SSPV2Delegate",
    "delegates.multi_instance": "MultiInstanceDelegate TokenMap",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = sorted([*_MODULE_OF, "aio", "library_version"])


def library_version() -> str:
    """Returns the version of the loaded library, "MAJOR.MINOR.PATCH"."""
    from ._c import ffi

    return ffi.text(ffi.lib.usher_version())


def __getattr__(name: str) -> object:
    if name == "aio":
        return import_module(".aio", __name__)
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
