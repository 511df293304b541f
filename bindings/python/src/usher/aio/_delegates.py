"""Delegates whose callbacks and overridden methods may be coroutines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _border, _options
from .._c.enums import Status
from .._errors import InvalidArgumentError
from .._question import Answer, Question, Reply
from ..delegates import base as _delegate
from ..delegates import customer as _customer
from ..delegates import default as _default
from ..delegates import hooks as _hooks
from ..delegates import multi_instance as _tokens
from ..delegates import ssp as _ssp
from ._context import Context
from ._play import TEARDOWN_MS
from ._requests import (
    CustomerCallback,
    CustomerRequest,
    HookCall,
    SessionCall,
    SessionCallback,
    TokenCallback,
    TokenRequest,
    question_here,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Made = Reply[Answer] | Awaitable[Answer | None]
"""The return value of a delegate's method: a value as in ``usher``, or an awaitable for such a value."""
Blocking = TypeVar("Blocking", bound=_delegate.Delegate)


class Delegate:
    """The ``usher.Delegate`` for asyncio. close(), or the end of a ``with`` block, frees it without waiting.

    Attributes:
        context: the context whose playbacks may use it.
        blocking: the ``usher.Delegate`` underneath.
    """

    _has_sessions = False
    _teardown_ms = TEARDOWN_MS
    blocking: _delegate.Delegate

    def __init__(self, context: Context) -> None:
        """For subclasses."""
        self.context = _border.instance(context, Context, "context")

    def close(self) -> None:
        """Frees the delegate. Playbacks that use it continue. A second call does nothing."""
        self.blocking.close()

    def connect_ahead(self, keep_ms: int = 0) -> None:
        """Opens connections to the servers before the first play, as ``usher.Delegate.connect_ahead`` does. Raises
        InvalidHandleError, InvalidArgumentError, ClosedError."""
        self.blocking.connect_ahead(keep_ms)

    def __repr__(self) -> str:
        return _border.shown_object(self, "closed" if self.blocking._is_closed else "open")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class HTTPDelegate(Delegate):
    """The ``usher.HTTPDelegate`` for asyncio: a subclass overrides steps of a licence request.

    The methods run on the thread of the event loop, and may be coroutine functions. To get the built-in value, await
    it:

        class Portal(usher.aio.SSPDelegate):
            async def http_headers(self, call):
                return {**await call.builtin(), "X-Device": await self.device()}
    """

    blocking: _hooks.HTTPDelegate

    def scheme(self) -> str:
        """Like ``usher.HTTPDelegate.scheme``."""
        return "skd"

    def content_identifier(self, call: HookCall[bytes]) -> Made[bytes]:
        """Like ``usher.HTTPDelegate.content_identifier``."""
        return call.builtin()

    def certificate(self, call: HookCall[bytes]) -> Made[bytes]:
        """Like ``usher.HTTPDelegate.certificate``."""
        return call.builtin()

    def http_headers(self, call: HookCall[dict[str, str]]) -> Made[dict[str, str]] | Made[_hooks.Headers]:
        """Like ``usher.HTTPDelegate.http_headers``."""
        return call.builtin()

    def license_url(self, call: HookCall[str]) -> Made[str]:
        """Like ``usher.HTTPDelegate.license_url``."""
        return call.builtin()

    def license_body(self, call: HookCall[bytes]) -> Made[bytes]:
        """Like ``usher.HTTPDelegate.license_body``."""
        return call.builtin()

    def license_from_reply(self, call: HookCall[bytes]) -> Made[bytes]:
        """Like ``usher.HTTPDelegate.license_from_reply``."""
        return call.builtin()

    def set_http_header(self, name: str, value: str | None) -> None:
        """Like ``usher.HTTPDelegate.set_http_header``. Raises InvalidHandleError, InvalidArgumentError."""
        self.blocking.set_http_header(name, value)

    def set_token_callback(self, callback: TokenCallback | None) -> None:
        """Sets or replaces the token callback; None removes it. Raises InvalidHandleError.

        The callback has `token_timeout_ms` to answer.
        """
        if callback is None:
            self.blocking.set_token_callback(None)
            return
        answer, context = _border.function(callback, "token_callback"), self.context
        self.blocking.set_token_callback(
            lambda request: context._ask("token", answer, question_here(TokenRequest, request))
        )

    def _hooked(self) -> _hooks.Hooked:
        context = self.context

        def run(name: str, call: _hooks.HookCall[Any], method: Callable[..., Any]) -> Any:
            return context._ask(name, method, question_here(HookCall, call))

        return _hooks.Hooked(context.blocking, self, HTTPDelegate, run)

    def _hooks(self) -> _hooks.Hooked | None:
        hooked = self._hooked()
        return None if hooked.is_empty else hooked


class CommonDelegate(HTTPDelegate):
    """Like ``usher.CommonDelegate``."""

    def __init__(self, context: Context, **options: Unpack[_options.DefaultOptions]) -> None:
        """Makes a delegate. Raises InvalidHandleError, InvalidArgumentError, ClosedError."""
        HTTPDelegate.__init__(self, context)
        blocking = _bare(_default.CommonDelegate)
        blocking._open_common(context.blocking, options, self._hooked())
        self.blocking = blocking


class DefaultDelegate(CommonDelegate):
    """Like ``usher.DefaultDelegate``."""

    def __init__(self, context: Context, **options: Unpack[_options.DefaultOptions]) -> None:
        """Makes a delegate. Raises InvalidHandleError, InvalidArgumentError, ClosedError."""
        HTTPDelegate.__init__(self, context)
        blocking = _bare(_default.DefaultDelegate)
        blocking._open(context.blocking, options, self._hooks())
        self.blocking = blocking


class _SSPDelegate(HTTPDelegate):
    def _open_ssp(
        self, context: Context, blocking: _ssp._SSPDelegate, token_callback: TokenCallback | None, options: Any
    ) -> None:
        if options.get("sync_setup_teardown"):
            raise InvalidArgumentError(
                "sync_setup_teardown would block the event loop: await wait_session()", status=Status.INVALID_ARGUMENT
            )
        self._teardown_ms = options.get("teardown_timeout_ms") or TEARDOWN_MS
        blocking._open(context.blocking, options, self._hooks(), None)
        self.blocking = blocking
        if token_callback is not None:
            self.set_token_callback(token_callback)


class SSPDelegate(_SSPDelegate):
    """The ``usher.SSPDelegate`` for asyncio; `token_callback` may be a coroutine function."""

    def __init__(
        self, context: Context, *, token_callback: TokenCallback | None = None, **options: Unpack[_options.SSPOptions]
    ) -> None:
        """Makes a delegate.

        Args:
            options: those of ``usher.SSPDelegate``, except `sync_setup_teardown`, which would block the event loop.
                Await Playback.wait_session() and Playback.close() instead.

        Raises:
            InvalidHandleError, InvalidArgumentError, ClosedError.
        """
        super().__init__(context)
        self._has_sessions = bool(options.get("ssm_url") or options.get("setup_url"))
        self._open_ssp(context, _bare(_ssp.SSPDelegate), token_callback, options)


class SSPV2Delegate(_SSPDelegate):
    """The ``usher.SSPV2Delegate`` for asyncio; `token_callback` may be a coroutine function.

    Playback.wait_session() waits for the first licence.
    """

    def __init__(
        self, context: Context, *, token_callback: TokenCallback | None = None, **options: Unpack[_options.SSPV2Options]
    ) -> None:
        """Makes a delegate. Arguments and errors are those of ``SSPDelegate``."""
        super().__init__(context)
        self._has_sessions = True
        self._open_ssp(context, _bare(_ssp.SSPV2Delegate), token_callback, options)


class MultiInstanceDelegate(_SSPDelegate, CommonDelegate):
    """The ``usher.MultiInstanceDelegate`` for asyncio; `token_callback` may be a coroutine function."""

    blocking: _tokens.MultiInstanceDelegate

    def __init__(
        self,
        context: Context,
        *,
        token_callback: TokenCallback | None = None,
        **options: Unpack[_options.MultiInstanceOptions],
    ) -> None:
        """Makes a delegate. Arguments and errors are those of ``SSPDelegate``."""
        HTTPDelegate.__init__(self, context)
        self._has_sessions = bool(options.get("ssm_url") or options.get("setup_url"))
        self._open_ssp(context, _bare(_tokens.MultiInstanceDelegate), token_callback, options)

    @property
    def tokens(self) -> _tokens.TokenMap:
        """The map of content tokens. It is the same class as in ``usher``, because none of its methods waits."""
        return self.blocking.tokens

    def set_stream_token(self, token: str, content_id: bytes | str) -> None:
        """Like ``usher.MultiInstanceDelegate.set_stream_token``."""
        self.blocking.set_stream_token(token, content_id)

    setStreamToken = set_stream_token  # the name in the SDK's example


class CustomerDelegate(Delegate):
    """The ``usher.CustomerDelegate`` for asyncio: the callbacks run on the thread of the event loop, and may be
    coroutine functions."""

    blocking: _customer.CustomerDelegate
    _has_sessions = True

    def __init__(
        self,
        context: Context,
        *,
        license: CustomerCallback | None = None,
        heartbeat: SessionCallback | None = None,
        teardown: SessionCallback | None = None,
        certificate: bytes | None = None,
        **options: Unpack[_options.CustomerOptions],
    ) -> None:
        """Makes a delegate. Arguments and errors are those of ``usher.CustomerDelegate``."""
        super().__init__(context)
        self._teardown_ms = options.get("teardown_timeout_ms") or TEARDOWN_MS
        given = {"license": license, "heartbeat": heartbeat, "teardown": teardown}
        for name, function in given.items():
            if function is not None:
                _border.function(function, name)
        blocking = _bare(_customer.CustomerDelegate)
        blocking._open(context.blocking, self._callbacks(self, given), certificate, options)
        self.blocking = blocking

    def _callbacks(self, target: object, given: dict[str, Any]) -> _customer.Callbacks:
        context = self.context
        kinds: dict[str, Any] = {"license": CustomerRequest, "heartbeat": SessionCall, "teardown": SessionCall}

        def run(name: str, question: Question[Any], function: Callable[..., Any]) -> Any:
            return context._ask(name, function, question_here(kinds[name], question))

        return _customer.Callbacks(context.blocking, target, CustomerDelegate, given, run)

    def set_callback(self, callback: object) -> None:
        """Sets or replaces the object whose methods the library calls, as ``usher.CustomerDelegate.set_callback`` does.
        The methods of `callback` may be coroutine functions."""
        given = {name: getattr(callback, name, None) for name in ("license", "heartbeat", "teardown")}
        self.blocking._set_callbacks(None if callback is None else self._callbacks(None, given))

    def license(self, request: CustomerRequest) -> Made[_customer.LicenseResponse]:
        """Like ``usher.CustomerDelegate.license``."""
        raise NotImplementedError

    def heartbeat(self, call: SessionCall) -> Made[Status]:
        """Like ``usher.CustomerDelegate.heartbeat``."""
        raise NotImplementedError

    def teardown(self, call: SessionCall) -> Made[Status]:
        """Like ``usher.CustomerDelegate.teardown``."""
        raise NotImplementedError


def _bare(kind: type[Blocking]) -> Blocking:
    """Makes a delegate of ``usher`` without a call of its __init__. The caller then opens it with the callbacks of the
    usher.aio delegate."""
    return kind.__new__(kind)
