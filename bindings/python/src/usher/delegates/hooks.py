"""Delegates that send requests over HTTP, and the steps of a licence request that a subclass may override."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Generic

from .. import _border
from .._answers import take
from .._c import abi, ffi, registry
from .._c.enums import Hook, LicenseType, Status
from .._callbacks import report_to, subject
from .._question import Answer, Question, Reply, ask
from ..context import Context
from .base import Delegate, TokenCallback, set_token_callback

METHODS = {
    Hook.CONTENT_ID: "content_identifier",
    Hook.CERTIFICATE: "certificate",
    Hook.HEADERS: "http_headers",
    Hook.LICENSE_URL: "license_url",
    Hook.LICENSE_BODY: "license_body",
    Hook.LICENSE: "license_from_reply",
}
"""For each hook, the method of a delegate that implements it."""

Headers = Mapping[str, str]
"""HTTP headers by name."""


class HookCall(Question[Answer], Generic[Answer]):
    """One step of a licence request. A method of the delegate gives the value of this step.

    The method returns the value. Or it returns LATER, and the host later calls answer() or fail() from any thread.

    Attributes:
        tag: the `tag` given to Player.play().
        hook: the step.
        type: REQUEST or RENEWAL.
        key_system: a str, not a ``KeySystem``, but it compares equal to a member; "" for content identifier and
            certificate.
        asset_id: the asset ID of the licence request; for content_identifier() the URL or asset ID. None: the host gave
            none.
        data: the CDM's payload; for license_from_reply() the server's reply. None for content identifier and
            certificate.
        http_status: for license_from_reply() the HTTP status of the reply; 0 for the other steps.
    """

    hook: Hook
    type: LicenseType
    key_system: str
    asset_id: bytes | None
    data: bytes | None
    http_status: int

    def builtin(self) -> Answer:
        """Returns the value of the built-in behaviour. The step still needs an answer after that.

        For a certificate this call may wait for the server.

        Raises:
            UsherError: the built-in behaviour failed.
            InvalidCompletionError: the step already has an answer, or its deadline has passed.
        """
        out = abi.ResponseHandle()
        status = ffi.lib.usher_hook_builtin(self._completion, ctypes.byref(out))
        made: Any = take(out, status, "usher_hook_builtin").data
        if self.hook is Hook.HEADERS:
            made = _read_headers(made)
        elif self.hook is Hook.LICENSE_URL:
            made = ffi.text(made)
        return made  # type: ignore[no-any-return]

    def answer_builtin(self) -> None:
        """Answers with the value of the built-in behaviour. Raises InvalidCompletionError like answer()."""
        self._send_answer(ffi.lib.usher_complete_builtin)

    def _complete(self, value: Any) -> None:
        if self.hook is Hook.HEADERS:
            self._send_answer(ffi.lib.usher_complete_headers, None if value is None else ffi.header_lines(value))
            return
        made = None if value is None else _made(self.hook, value)
        self._send_answer(ffi.lib.usher_complete_hook, ffi.c_bytes(made), 0 if made is None else len(made))


def _made(hook: Hook, value: Any) -> bytes:
    """Converts the return value of a method to bytes for C. Raises TypeError for a wrong type."""
    if hook is Hook.LICENSE_URL and isinstance(value, str):
        return ffi.c_string(value, "the URL") or b""
    if hook is Hook.LICENSE_URL or not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{METHODS[hook]}() returned {type(value).__name__}")
    return bytes(value)


def _read_headers(lines: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in ffi.text(lines).split("\n") if line)
    return {name: value.strip() for name, _, value in pairs}


Made = Reply[Answer]
"""The return value of a delegate's method: the answer, None (no value), a concurrent.futures.Future, or LATER if it
keeps the call to answer it later."""


class HTTPDelegate(Delegate):
    """A delegate that sends requests over HTTP. Make an object of one of the subclasses.

    Your subclass overrides the method of each step that it changes; the library does the other steps itself. It calls
    the methods on a callback thread (in pumped mode inside pump()); for each playback the calls come one after another.

    A method must answer within `hook_timeout_ms`. It returns the value or a ``concurrent.futures.Future``; or it keeps
    `call`, returns ``usher.LATER``, and your program answers later from any thread. None means that there is no value:
    the request fails with CallbackError. If the method raises an exception, this counts as None, and the exception
    becomes the ``__cause__`` of that error; see Context. ``call.builtin()``, or the method of the superclass, returns
    the built-in value:

        class Portal(usher.SSPDelegate):
            def http_headers(self, call):
                return {**super().http_headers(call), "X-Device": self.device}

    The delegate lives at least as long as a playback that uses it.
    """

    # ---- steps to override -------------------------------------------------------------------------------------------

    def scheme(self) -> str:
        """Returns the scheme of content URLs; the library removes this scheme from content identifiers. The constructor
        calls this method once."""
        return "skd"

    def content_identifier(self, call: HookCall[bytes]) -> Made[bytes]:
        """Returns the content identifier for the SPC. ``call.asset_id`` is the URL or asset ID that contains it.

        Apple: contentIdentifier(url:).
        """
        return call.builtin()

    def certificate(self, call: HookCall[bytes]) -> Made[bytes]:
        """The application certificate. Apple: certificate()."""
        return call.builtin()

    def http_headers(self, call: HookCall[dict[str, str]]) -> Made[dict[str, str]] | Made[Headers]:
        """Returns the headers of a licence request. The library sends them instead of the token header and the headers
        of set_http_header().

        {}: the library sends the request without these headers. None: the library does not send the request, which
        fails with DeclinedError.
        Apple: generateHTTPHeaders(assetID:).
        """
        return call.builtin()

    def license_url(self, call: HookCall[str]) -> Made[str]:
        """Returns the URL of a licence request. For a renewal add ``renew=true`` if the server needs this.

        Apple: getLicenseRequestUrl().
        """
        return call.builtin()

    def license_body(self, call: HookCall[bytes]) -> Made[bytes]:
        """Returns the body of a licence request; ``call.data`` is the CDM's payload."""
        return call.builtin()

    def license_from_reply(self, call: HookCall[bytes]) -> Made[bytes]:
        """Returns the licence in the reply ``call.data``. Apple: getCkcFromLicenseResponse().

        The library does not call this method for replies with an HTTP error. The library itself reads the session's
        fields in the reply, so do not return these.
        """
        return call.builtin()

    # ---- headers and tokens ------------------------------------------------------------------------------------------

    def set_http_header(self, name: str, value: str | None) -> None:
        """Sets a header of the next licence requests, for example the token of the next stream; None removes it.

        If a playback has a token for the same header, the library sends the playback's token instead. Logs and errors
        never show the value.

        Raises:
            InvalidArgumentError: the value contains CR, LF or NUL, or is longer than 64 kB.
            InvalidHandleError.
        """
        header = ffi.c_string(_border.text(name, "name"), "name"), ffi.c_string(value, "value")
        _border.passed(lambda: ffi.lib.usher_delegate_set_http_header(self._handle, *header), {"value": value})

    def set_token_callback(self, callback: TokenCallback | None) -> None:
        """Sets or replaces the token callback; None removes it.

        The library calls the callback in three cases: Player.play() got no token; the host requests another licence
        after the first one has arrived; a server replied with 401 or 403.

        The callback runs on a callback thread (in pumped mode inside pump()) and returns the token within
        `token_timeout_ms`: ``lambda request: "token"``.
        None means that there is no token: the licence request fails with NoTokenError. To answer later, return a
        ``concurrent.futures.Future``; or keep the request, return ``usher.LATER``, and call ``request.answer(token)``
        or ``request.fail()`` from any thread. If the callback raises an exception, this counts as None, and the
        exception becomes the ``__cause__`` of the NoTokenError; see Context.

        Raises:
            InvalidHandleError.
        """
        set_token_callback(self, callback)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _set_hooks(self, hooks: Hooked | None) -> None:
        """Sets the hooks of a delegate that was made without hooks."""
        if hooks is None:
            return
        try:
            entry = registry.add(hooks)
            ffi.lib.usher_delegate_set_hooks(self._handle, ctypes.byref(hooks.structure), entry, registry.destroy)
        except BaseException:
            self.close()
            raise


Run = Callable[[str, HookCall[Any], Callable[..., Any]], Any]


class Hooked:
    """The hooks of one delegate. C gets the id of this object as ``user_data``.

    It has only a weak reference to the object with the methods. The host, playbacks and the context keep this object
    alive.
    """

    def __init__(self, context: Context, target: Any, base: type, run: Run | None = None) -> None:
        """`target` has the overridden methods, `base` is the class with the built-in ones, and `run` calls a method."""
        self.context = weakref.ref(_border.instance(context, Context, "context"))
        self.run = run
        self._target = weakref.ref(target)
        self.structure = abi.DelegateHooks(struct_size=ctypes.sizeof(abi.DelegateHooks))
        self.is_empty = True
        if _is_overridden(target, base, "scheme"):
            self.structure.scheme = ffi.c_string(target.scheme(), "scheme")
            self.is_empty = False
        for hook, field in _FIELDS.items():
            if _is_overridden(target, base, METHODS[hook]):
                setattr(self.structure, field, _on_hook)
                self.is_empty = False

    def answer(self, call: HookCall[Any]) -> Any:
        target = self._target()
        if target is None:
            raise RuntimeError("the delegate object no longer exists")
        method = getattr(target, METHODS[call.hook])
        return method(call) if self.run is None else self.run(METHODS[call.hook], call, method)


_FIELDS = {
    Hook.CONTENT_ID: "content_id",
    Hook.CERTIFICATE: "certificate",
    Hook.HEADERS: "http_headers",
    Hook.LICENSE_URL: "license_url",
    Hook.LICENSE_BODY: "license_body",
    Hook.LICENSE: "license",
}


def hooks_of(context: Context, target: Any, base: type = HTTPDelegate) -> Hooked | None:
    """Returns the hooks that an object overrides; None if it overrides none."""
    hooks = Hooked(context, target, base)
    return None if hooks.is_empty else hooks


def _is_overridden(target: Any, base: type, name: str) -> bool:
    return getattr(type(target), name) is not getattr(base, name)


def _asked_hook(pointer: Any, number: int | None) -> None:
    hooks = registry.get(number)
    if hooks is None:
        return
    raw = pointer.contents
    hook = Hook(raw.hook)
    call: HookCall[Any] = HookCall(
        raw.completion,
        *subject(raw.playback, raw.tag),
        _fails_as=Status.DECLINED if hook is Hook.HEADERS else Status.CALLBACK,
        hook=hook,
        type=LicenseType(raw.type),
        key_system=ffi.text(raw.key_system),
        asset_id=ffi.copied(raw.asset_id, raw.asset_id_size),
        data=ffi.copied(raw.data, raw.data_size),
        http_status=raw.http_status,
    )
    ask(call, hooks.answer, lambda error: report_to(hooks.context(), METHODS[hook], error))


_on_hook = abi.HookFn(_asked_hook)
