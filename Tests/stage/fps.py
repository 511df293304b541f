"""Parts that the stories of the resource loader share: a test CDM, and a loader that uses the head-end's servers."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage
from usher.testing import fairplay

MEDIA = Path(__file__).resolve().parents[1] / "media" / "hls" / "media.json"
IV = bytes(range(16))
CONTENT = "movie-1"
SKD = fairplay.skd_url(CONTENT, KID, IV)
"""A URL whose asset id is base64 of JSON, as the head-end expects it."""


class CDM:
    """A FairPlay CDM for tests: makes SPCs, opens CKCs, records its calls. Any thread may call any method."""

    def __init__(self, device: bytes = b"") -> None:
        self.asked: list[usher.SPCRequest] = []
        self._device = device
        self._spcs: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    def __call__(self, request: usher.SPCRequest) -> bytes:
        with self._lock:
            self.asked.append(request)
        return self.make(request)

    def make(self, request: usher.SPCRequest) -> bytes:
        spc = fairplay.make_spc(request.content_id, request.certificate or b"", device=self._device)
        with self._lock:
            self._spcs[hashlib.sha256(spc).digest()] = spc
        return spc

    def opened(self, ckc: bytes) -> tuple[bytes, bytes]:
        """Returns key id and key. Raises ValueError if the CKC is damaged or is not the reply to an SPC of this CDM."""
        with self._lock:
            spc = self._spcs.get(ckc[4:36], b"")
        return fairplay.open_ckc(ckc, spc)


def loader(stage: Stage, spc: Any = None, **options: Any) -> usher.ResourceLoader:
    """Makes a loader for this head-end, by default with the head-end's key server. The loader allows the head-end's
    host, and plain http."""
    if not {"license_url", "entitlement_url", "route", "allowed_hosts"} & options.keys():
        options["license_url"] = stage.headend.fps_url
    if {"route", "entitlement_url"} & options.keys():
        options.setdefault("allowed_hosts", [host(stage)])
    options.setdefault("derived_scheme", "https" if stage.headend.config.tls else "http")
    return usher.ResourceLoader(stage.context, spc or CDM(), **options)


def host(stage: Stage) -> str:
    """Returns the host and port of the head-end, in the form of an entry of `allowed_hosts`."""
    return f"127.0.0.1:{stage.headend.port}"


def skd(url: str) -> str:
    """Returns the URL with the scheme `skd:`."""
    return "skd" + url[url.index(":") :]


def play(stage: Stage, **options: Any) -> usher.Playback:
    """Starts a playback that has no licence delegate, only the loader. Returns the playback."""
    return stage.play(delegate=None, **options)


def ready(stage: Stage) -> None:
    """Adds the content and its key to the head-end."""
    stage.headend.add_key(KID, KEY, CONTENT)


def failed(playback: usher.Playback, url: str | bytes = SKD) -> usher.UsherError:
    """Loads this URL, which must fail. Returns the error."""
    with pytest.raises(usher.UsherError) as caught:
        playback.get_resource(url)
    return caught.value
