"""The FairPlay resource loader: from the `skd:` URL in a playlist to the key for the CDM."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypedDict

from ._c import abi, ffi, registry
from ._c.enums import ContentIDRule, FPSRequest, FPSResponse, Route, Status, URLEncode
from ._callbacks import HostFunction, register, subject
from ._errors import InvalidArgumentError
from ._part import Part
from ._question import Causes, Question, Reply, ask

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .context import Context
    from .playback import Playback


class LoaderOptions(TypedDict, total=False):
    """How a resource loader works. 0 and None mean the default that usher_loader_options names beside each option.

    scheme: of the URLs it handles. Default "skd".
    route: where the SPC goes: `license_url` (KEY_SERVER), the token URL that `entitlement_url` answers (ENTITLEMENT), or the `skd:` URL itself, its
        scheme replaced (TOKEN_URL).
    content_id_rule: which part of the URL is the content identifier.
    license_url, entitlement_url: default: the URL inside the `skd:` URL, if its host is allowed.
    allowed_hosts: hosts that a URL out of content, or of an entitlement server, may have: "host", "host:port", "host:*", "*.example.com"; without a
        port: the scheme's own. Default: none, so no such URL is used.
    derived_scheme: "https" or "http" (for loopback): in place of `scheme`.
    certificate, certificate_file, certificate_url: the application certificate, one of the three. A file is read at once; a URL fetched with the
        first request, and again with the next where that failed.
    extra_headers: "Name: value" lines for the key server, separated by newlines.
    request_format, spc_urlencode, spc_field, content_id_field: how the SPC is wrapped.
    response_format, response_path: how the CKC is wrapped; the path ("a.b") is of JSON.
    device_binding: the entitlement server binds the device: the first pass registers it, later ones are bound to it. Wants `customer_cookie`.
    customer_cookie: for the entitlement server, up to 32 bytes of UTF-8.
    spc_timeout_ms: how long the SPC callback may take, milliseconds. Default 5000.
    """

    scheme: str | None
    route: Route | int
    content_id_rule: ContentIDRule | int
    license_url: str | None
    entitlement_url: str | None
    allowed_hosts: Iterable[str] | None
    derived_scheme: str | None
    certificate: bytes | None
    certificate_file: str | os.PathLike[str] | None
    certificate_url: str | None
    extra_headers: str | None
    request_format: FPSRequest | int
    spc_urlencode: URLEncode | int
    spc_field: str | None
    content_id_field: str | None
    response_format: FPSResponse | int
    device_binding: bool
    customer_cookie: str | None
    spc_timeout_ms: int
    response_path: str | None


class SPCRequest(Question[bytes]):
    """The library asks for an SPC of the CDM: 1 byte to 1 MiB.

    Attributes:
        certificate: the application certificate; None: the loader has none.
        content_id: the content identifier.
        url: the URL as it was given.
    """

    _fails_as = Status.CALLBACK

    def __init__(
        self,
        completion: int,
        playback: Playback | None,
        tag: object,
        causes: Causes | None = None,
        *,
        certificate: bytes | None,
        content_id: bytes,
        url: str,
    ) -> None:
        super().__init__(completion, playback, tag, causes)
        self.certificate = certificate
        self.content_id = content_id
        self.url = url

    def _complete(self, value: bytes | None) -> None:
        self._tell(ffi.lib.usher_complete_payload, ffi.c_bytes(value), 0 if value is None else len(value))


SPCCallback = Callable[[SPCRequest], Reply[bytes]]
"""``lambda request: make_spc(request.certificate, request.content_id)``. May also return None (there is none), a concurrent.futures.Future, or
LATER after keeping the request."""


class ResourceLoader(Part):
    """Loads what stands behind the URLs of one scheme (PTAVAssetResourceLoaderDelegate): certificate, SPC, key server, CKC.

        loader = usher.ResourceLoader(context, spc=make_spc, license_url=KEY_SERVER, certificate_file="fairplay.cer")
        cdm.set_key(playback.get_resource("skd://…"))

    Serves every playback of its context; the context keeps it until close(), or until another takes over its scheme. A context with a loader lets
    items be played that have no licence delegate.
    """

    _free = ffi.lib.usher_loader_free

    def __init__(self, context: Context, spc: SPCCallback, **options: Unpack[LoaderOptions]) -> None:
        """Makes a loader and registers it; one registered for the scheme before is replaced.

        The callback runs on a library thread, in the order of the playback, and has `spc_timeout_ms` to answer: ``lambda request: spc``. Returning
        None means that there is none (the request fails with CallbackError). To answer later, return a ``concurrent.futures.Future``, or keep the
        request, return ``usher.LATER``, and call ``request.answer(spc)`` or ``request.fail()`` from any thread. An exception counts as None, and
        becomes the ``__cause__`` of that CallbackError; see Context.

        Args:
            context: whose playbacks it serves.
            spc: has the CDM make an SPC.
            options: ``LoaderOptions``.

        Raises:
            InvalidHandleError, InvalidArgumentError (also for a certificate file that cannot be read), ClosedError.
        """
        super().__init__(context, abi.LoaderHandle())
        self.scheme = (options.get("scheme") or "skd").lower()
        structure = _structure(options)
        structure.spc = _on_spc
        structure.user_data = register(context, "spc", spc)
        structure.destroy = registry.destroy
        ffi.lib.usher_context_add_loader(context._handle, ctypes.byref(structure), ctypes.byref(self._handle))
        self._has_handle = True
        context._loaders[self.scheme] = self

    def close(self) -> None:
        """Unregisters it. Loading requests under way go on. Again: does nothing."""
        if self.context._loaders.get(self.scheme) is self:
            self.context._loaders.pop(self.scheme, None)
        super().close()


def _structure(options: LoaderOptions) -> abi.LoaderOptions:
    given: dict[str, Any] = dict(options)
    if {"spc", "user_data", "destroy", "certificate_size"} & given.keys():
        raise TypeError("the library's own option was given")
    hosts, certificate = given.pop("allowed_hosts", None), given.pop("certificate", None)
    if hosts is not None:
        given["allowed_hosts"] = hosts if isinstance(hosts, str) else _hosts(hosts)
    structure = ffi.filled(abi.LoaderOptions, given)
    if certificate is not None:
        structure.certificate = ffi.c_bytes(certificate)
        structure.certificate_size = len(certificate)
    return structure


def _hosts(hosts: Iterable[str]) -> str:
    patterns = list(hosts)
    if any(not pattern or any(map(str.isspace, pattern)) for pattern in patterns):
        raise InvalidArgumentError("a host is empty or has a blank in it", status=Status.INVALID_ARGUMENT)
    return " ".join(patterns)


def _asked_spc(pointer: Any, number: int | None) -> None:
    source: HostFunction | None = registry.get(number)
    if source is None:
        return
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


_on_spc = abi.SpcFn(_asked_spc)
