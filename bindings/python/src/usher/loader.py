"""The FairPlay resource loader, which gets the key for the CDM from the `skd:` URL in a playlist."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _border
from ._c import abi, ffi, registry
from ._c.enums import Status, TokenKind
from ._callbacks import HostFunction, subject
from ._options import LoaderOptions
from ._part import Part
from ._question import Question, Reply, ask

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .context import Context


class SPCRequest(Question[bytes]):
    """The library needs an SPC from the CDM, 1 byte to 1 MiB.

    Attributes:
        certificate: the application certificate; None: the loader has none.
        content_id: the content identifier.
        url: the URL of the loading request.
    """

    _fails_as = Status.CALLBACK

    certificate: bytes | None
    content_id: bytes
    url: str

    def _complete(self, value: bytes | None) -> None:
        self._send_answer(ffi.lib.usher_complete_payload, ffi.c_bytes(value), 0 if value is None else len(value))


SPCCallback = Callable[[SPCRequest], Reply[bytes]]
"""``lambda request: make_spc(request.certificate, request.content_id)``. It may also return None (no SPC), a
concurrent.futures.Future, or LATER if it keeps the request to answer it later."""


class ServerRequest(Question["Server"]):
    """The library asks the host to which server it must send the SPC. Answer with answer(), ask_entitlement() or
    answer_builtin().

    Attributes:
        url: the URL of the loading request.
        content_id: the content identifier for the SPC; b"": the URL has none.
        entitlement_id: the content identifier for an entitlement server; b"": the URL has none.
        entitlement_url: the entitlement server that the library would ask; None: it knows none.
        token_kind: the token that the library would ask for.
    """

    _fails_as = Status.CALLBACK

    url: str
    content_id: bytes
    entitlement_id: bytes
    entitlement_url: str | None
    token_kind: TokenKind

    def ask_entitlement(
        self,
        url: str | None = None,
        content_id: bytes | None = None,
        token_kind: TokenKind | int = TokenKind.BY_LOADER,
    ) -> None:
        """Answers that the library must ask an entitlement server for the token URL.

        The library sends the SPC to this token URL if `allowed_hosts` lists its host. If the loader has the callback
        `token_url`, the library calls this callback first.

        Args:
            url: the entitlement server. None: `entitlement_url`.
            content_id: UTF-8. None: `entitlement_id`.
            token_kind: the kind of token. BY_LOADER: the `token_kind` of this request.

        Raises:
            InvalidCompletionError, InvalidArgumentError: like answer().
        """
        given: dict[str, Any] = {"url": url}
        structure = ffi.filled(abi.Entitlement, given)
        structure.token_kind = _border.member(token_kind, TokenKind, "token_kind")
        if content_id is not None:
            structure.content_id = ffi.c_bytes(content_id)
            structure.content_id_size = len(content_id)
        self._send_answer(ffi.lib.usher_complete_entitlement, ctypes.byref(structure))

    def answer_builtin(self) -> None:
        """Answers that the library must do what it would do without the callback. Raises InvalidCompletionError like
        answer()."""
        self._send_answer(ffi.lib.usher_complete_builtin)

    def _complete(self, value: Server | None) -> None:
        url, headers = (value, None) if value is None or isinstance(value, str) else value
        lines = None if headers is None else ffi.header_lines(headers)
        self._send_answer(ffi.lib.usher_complete_server, None if url is None else ffi.c_string(url, "the URL"), lines)


Server = Union[str, "tuple[str, Mapping[str, str]]"]
"""A server to which the library sends the SPC: its URL, or its URL and the headers of the request."""

ServerCallback = Callable[[ServerRequest], Reply[Server]]
"""``lambda request: "https://keys.example.com/" + request.content_id.decode()``. It may also return None (no server), a
concurrent.futures.Future, or LATER if it keeps the request to answer it later."""


class _Functions(NamedTuple):
    """The callbacks of a loader, which share one ``user_data``."""

    spc: HostFunction
    server: HostFunction | None
    token_url: HostFunction | None


class ResourceLoader(Part):
    """Loads keys for the URLs of one scheme: gets the certificate and an SPC, and asks the key server for the CKC
    (PTAVAssetResourceLoaderDelegate).

        loader = usher.ResourceLoader(context, spc=make_spc, license_url=KEY_SERVER, certificate_file="fairplay.cer")
        cdm.set_key(playback.get_resource("skd://…"))

    Every playback of the context can use the loader. The context keeps the loader until close(), or until the host
    registers another loader for the same scheme. With a loader, a context can play items without a licence delegate.
    """

    _free = ffi.lib.usher_loader_free

    def __init__(
        self,
        context: Context,
        spc: SPCCallback,
        server: ServerCallback | None = None,
        token_url: ServerCallback | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """Makes a loader and registers it. The new loader replaces an earlier loader for the same scheme.

        The callback runs on a callback thread (in pumped mode inside pump()); for each playback the calls come one
        after another. It must answer within `spc_timeout_ms`: ``lambda request: spc``. None means that there is no SPC:
        the request fails with CallbackError. To answer later, return a ``concurrent.futures.Future``; or keep the
        request, return ``usher.LATER``, and call ``request.answer(spc)`` or ``request.fail()`` from any thread. If the
        callback raises an exception, this counts as None, and the exception becomes the ``__cause__`` of the
        CallbackError; see Context. The callbacks `server` and `token_url` work in the same way, but must answer within
        `server_timeout_ms`.

        Args:
            context: the context whose playbacks can use the loader.
            spc: a function that makes an SPC with the CDM.
            server: a function that decides for each URL to which server the library sends the SPC, and with which
                headers; see ``ServerRequest``. None: `route` decides.
            token_url: a function that gets the token URL; the library then sends no request to the entitlement server.
            options: ``LoaderOptions``.

        Raises:
            InvalidArgumentError: an option is malformed, or the certificate file cannot be read.
            InvalidHandleError, ClosedError.
        """
        super().__init__(context, abi.LoaderHandle())
        self.scheme = (options.get("scheme") or "skd").lower()
        _border.known(options, [*LoaderOptions.__annotations__, "spc", "server", "token_url"], type(self).__name__)
        for name, function in (("spc", spc), ("server", server), ("token_url", token_url)):
            if function is not None or name == "spc":
                _border.function(function, name)
        structure = ffi.filled(abi.LoaderOptions, options)
        structure.spc = _on_spc
        if server is not None:
            structure.server = _on_server
        if token_url is not None:
            structure.token_url = _on_token_url
        own = weakref.ref(context)
        functions = _Functions(
            HostFunction(own, "spc", spc),
            None if server is None else HostFunction(own, "server", server),
            None if token_url is None else HostFunction(own, "token_url", token_url),
        )
        structure.user_data = registry.add(functions)
        structure.destroy = registry.destroy
        add = ffi.lib.usher_context_add_loader
        _border.passed(lambda: add(context._handle, ctypes.byref(structure), ctypes.byref(self._handle)), options)
        self._has_handle = True
        context._loaders[self.scheme] = self

    def _state(self) -> str:
        return f"scheme {self.scheme}"

    def close(self) -> None:
        """Unregisters the loader and frees it. Running requests continue. A second call does nothing."""
        if self.context._loaders.get(self.scheme) is self:
            self.context._loaders.pop(self.scheme, None)
        super().close()


def _asked_spc(pointer: Any, number: int | None) -> None:
    functions: _Functions | None = registry.get(number)
    if functions is None:
        return
    source = functions.spc
    raw = pointer.contents
    playback, tag = subject(raw.playback, raw.tag)
    url = ffi.copied(raw.url, raw.url_size) or b""
    request = SPCRequest(
        raw.completion,
        playback,
        tag,
        None if playback is None else playback._load_causes.get(url),
        certificate=ffi.copied(raw.certificate, raw.certificate_size),
        content_id=ffi.copied(raw.content_id, raw.content_id_size) or b"",
        url=url.decode("utf-8", "surrogateescape"),
    )
    ask(request, source.function, source.failed)


def _asked_server(pointer: Any, source: HostFunction | None) -> None:
    if source is None:
        return
    raw = pointer.contents
    playback, tag = subject(raw.playback, raw.tag)
    url = ffi.copied(raw.url, raw.url_size) or b""
    request = ServerRequest(
        raw.completion,
        playback,
        tag,
        None if playback is None else playback._load_causes.get(url),
        url=url.decode("utf-8", "surrogateescape"),
        content_id=ffi.copied(raw.content_id, raw.content_id_size) or b"",
        entitlement_id=ffi.copied(raw.entitlement_id, raw.entitlement_id_size) or b"",
        entitlement_url=None if raw.entitlement_url is None else ffi.text(raw.entitlement_url),
        token_kind=TokenKind(raw.token_kind),
    )
    ask(request, source.function, source.failed)


def _asked_first_server(pointer: Any, number: int | None) -> None:
    functions: _Functions | None = registry.get(number)
    _asked_server(pointer, functions and functions.server)


def _asked_token_url(pointer: Any, number: int | None) -> None:
    functions: _Functions | None = registry.get(number)
    _asked_server(pointer, functions and functions.token_url)


_on_spc = abi.SpcFn(_asked_spc)
_on_server = abi.ServerFn(_asked_first_server)
_on_token_url = abi.ServerFn(_asked_token_url)
