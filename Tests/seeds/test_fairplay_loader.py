"""Tests the FairPlay resource loader (seed S4) in C, C++ and Python: its ways to get a licence, and device binding."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from seeds.clips import MEDIA, Clip
from seeds.ports import LANGUAGES, Ports

from usher.testing import fairplay, media
from usher.testing.headend import Entry, HeadEnd

PORT = "fairplay_loader"

CONTENT = "movie-1"
Load = Callable[..., list[str]]


@pytest.fixture
def headend(clips: list[Clip]) -> Iterator[HeadEnd]:
    with HeadEnd(clock="system", control=False) as running:
        key = media.read(MEDIA)[0].keys[0]
        running.add_key(key.kid, key.key, CONTENT)
        yield running


@pytest.fixture
def load(headend: HeadEnd, ports: Ports, clips: list[Clip], tmp_path: Path) -> Load:
    """Returns a function that runs the port of the seed in one language, and returns the lines that this program
    prints. The program reads the head-end's certificate from a file."""
    certificate = tmp_path / "my_certificate.cer"
    certificate.write_bytes(headend_certificate(headend))

    def run(
        language: str, use_case: str, server: str, url: str, *more: str, known: str = "unknown", status: int = 0
    ) -> list[str]:
        arguments = use_case, server, url, str(certificate), str(clips[0].file), known, *more
        return ports.run(PORT, language, *arguments, status=status)

    return run


def headend_certificate(headend: HeadEnd) -> bytes:
    with urllib.request.urlopen(headend.fps_certificate_url) as reply:
        return bytes(reply.read())


def played(clips: list[Clip], *events: str) -> list[str]:
    """Returns the output that a host program (a port of the seed, see ports.py) must print if it got the right CKC."""
    return [clips[0].pictures, *(f"event {event}" for event in sorted((*events, "LICENSE", "PLAYBACK_CLOSED")))]


def routes(headend: HeadEnd) -> list[Entry]:
    return [entry for entry in headend.journal if entry.route in ("ckc", "entitlement", "rights")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_hardCodedTokenURL_givesTheKey(headend: HeadEnd, load: Load, clips: list[Clip], language: str) -> None:
    """For a test, the ExpressPlay token URL is hard-coded in the application. The library sends the SPC to this URL,
    with port and query."""
    url = headend.rights_token_url(CONTENT)
    assert load(language, "0", url, f"skd://{CONTENT}") == played(clips)
    (sent,) = routes(headend)
    assert headend.url + sent.path == url


@pytest.mark.parametrize("language", LANGUAGES)
def test_useCase1_onPremiseServer_theApplicationNamesIt(
    headend: HeadEnd, load: Load, clips: list[Clip], language: str
) -> None:
    assert load(language, "1", headend.fps_url, f"skd:{CONTENT}") == played(clips)
    (sent,) = routes(headend)
    assert (sent.route, sent.header("x-asset")) == ("ckc", "on-premise")
    spc = fairplay.read_spc(sent.body)
    assert spc.identifier.decode() == CONTENT
    assert spc.certificate_sha256 == hashlib.sha256(headend_certificate(headend)).digest()


@pytest.mark.parametrize("language", LANGUAGES)
def test_urlHasNothing_theApplicationKnowsTheContent(
    headend: HeadEnd, load: Load, clips: list[Clip], language: str
) -> None:
    """The `skd:` URL has no content id; the application knows the content in another way. The key server gets the SPC
    for this content."""
    assert load(language, "1", headend.fps_url, "skd://", known=CONTENT) == played(clips)
    assert [entry.route for entry in routes(headend)] == ["ckc"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_useCase2_entitlementServer_namesTheTokenURL_andBindsTheDevice(
    headend: HeadEnd, load: Load, clips: list[Clip], language: str
) -> None:
    """The first run registers the device (bEnforceDeviceID = false). The second run knows that the device is
    registered, and asks for a token that only this device can use."""
    arguments = (language, "2", headend.entitlement_url, f"skd://{CONTENT}")
    assert load(*arguments) == played(clips, "DEVICE_REGISTERED")
    assert load(*arguments, "device_registered") == played(clips)
    asked = [json.loads(entry.body) for entry in routes(headend) if entry.route == "entitlement"]
    assert [(body["requestType"], body["contentID"]) for body in asked] == [(2, CONTENT), (3, CONTENT)]
    assert [entry.route for entry in routes(headend)] == ["entitlement", "rights"] * 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_useCase2_entitlementServerInTheURL_isAskedForItsCid(
    headend: HeadEnd, load: Load, clips: list[Clip], language: str
) -> None:
    """The packager wrote skd:{entitlement_server_url}?cid={content_id}; the application needs no hard-coded server."""
    url = headend.entitlement_url.replace("http://", "skd:") + f"?cid={CONTENT}"
    assert load(language, "2", "-", url) == played(clips, "DEVICE_REGISTERED")
    assert [entry.route for entry in routes(headend)] == ["entitlement", "rights"]
    assert json.loads(routes(headend)[0].body)["contentID"] == CONTENT


@pytest.mark.parametrize("language", LANGUAGES)
def test_useCase2_entitlementDenied_isTheErrorOfTheLoadingRequest(headend: HeadEnd, load: Load, language: str) -> None:
    headend.deny(CONTENT, "not in your package", 17)
    told = load(language, "2", headend.entitlement_url, f"skd://{CONTENT}", status=1)
    assert any("REFUSED" in line and "not in your package" in line for line in told)
    assert [entry.route for entry in routes(headend)] == ["entitlement"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_useCase3_tokenURLInTheContent_itsSchemeIsReplaced(
    headend: HeadEnd, load: Load, clips: list[Clip], language: str
) -> None:
    url = "skd" + headend.rights_token_url(CONTENT).removeprefix("http") + f"&x=1;{CONTENT}"
    assert load(language, "3", "-", url) == played(clips)
    (sent,) = routes(headend)
    assert "skd" + headend.url.removeprefix("http") + sent.path == url
