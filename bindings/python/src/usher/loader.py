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
    """Options of resource loaders; see usher_loader_options. 0 and None mean the default documented there.

    scheme: the scheme of the URLs that the loader handles. Default "skd".
    route: where the loader sends the SPC: to `license_url` (KEY_SERVER), to the token URL in the reply of
        `entitlement_url` (ENTITLEMENT), or to the `skd:` URL with `derived_scheme` (TOKEN_URL).
    content_id_rule: the part of the URL that is the content identifier.
    license_url, entitlement_url: default: the URL inside the `skd:` URL, if its host is allowed.
    allowed_hosts: hosts that URLs in the content or from an entitlement server may have: "host", "host:port", "host:*",
        "*.example.com"; without a port: the default port of the scheme. Default: the loader uses no such URL.
    derived_scheme: the scheme that replaces `scheme`: "https", or "http" for loopback.
    certificate, certificate_file, certificate_url: the application certificate; give one of the three. The loader reads
        a file at once. It downloads from a URL at the first request; if that fails, the next request tries again.
    extra_headers: "Name: value" lines for the key server, separated by newlines.
    request_format, spc_urlencode, spc_field, content_id_field: the format of the request with the SPC.
    response_format, response_path: the format of the reply with the CKC; the path ("a.b") is for JSON.
    device_binding: the entitlement server binds the device: the first request registers it, later ones use the binding.
        Needs `customer_cookie`.
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
    """The library needs an SPC from the CDM, 1 byte to 1 MiB.

    Attributes:
        certificate: the application certificate; None: the loader has none.
        content_id: the content identifier.
        url: the URL of the loading request.
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
"""``lambda request: make_spc(request.certificate, request.content_id)``. It may also return None (no SPC), a
concurrent.futures.Future, or LATER if it keeps the request to answer it later."""


class ResourceLoader(Part):
    """Loads keys for the URLs of one scheme: certificate, SPC, key server, CKC (PTAVAssetResourceLoaderDelegate).

        loader = usher.ResourceLoader(context, spc=make_spc, license_url=KEY_SERVER, certificate_file="fairplay.cer")
        cdm.set_key(playback.get_resource("skd://…"))

    It serves every playback of its context. The context keeps it until close(), or until the host registers another
    loader for its scheme. With a loader, a context can play items without a licence delegate.
    """

    _free = ffi.lib.usher_loader_free

    def __init__(self, context: Context, spc: SPCCallback, **options: Unpack[LoaderOptions]) -> None:
        """Makes a loader and registers it; it replaces an earlier loader for the same scheme.

        The callback runs on a callback thread (in pumped mode inside pump()); for each playback the calls come one
        after another. It has `spc_timeout_ms` to answer: ``lambda request: spc``. None means no SPC: the request fails
        with CallbackError. To answer later, return a ``concurrent.futures.Future``; or keep the request, return
        ``usher.LATER``, and call ``request.answer(spc)`` or ``request.fail()`` from any thread. An exception counts as
        None and becomes the ``__cause__`` of the CallbackError; see Context.

        Args:
            context: the loader serves its playbacks.
            spc: a function that makes an SPC with the CDM.
            options: ``LoaderOptions``.

        Raises:
            InvalidArgumentError: an option is malformed, or the certificate file cannot be read.
            InvalidHandleError, ClosedError.
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
        """Unregisters the loader and frees it. Running requests continue. A second call does nothing."""
        if self.context._loaders.get(self.scheme) is self:
            self.context._loaders.pop(self.scheme, None)
        super().close()


def _structure(options: LoaderOptions) -> abi.LoaderOptions:
    given: dict[str, Any] = dict(options)
    if {"spc", "user_data", "destroy", "certificate_size"} & given.keys():
        raise TypeError("spc, user_data, destroy and certificate_size are not options: these bindings set them")
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
