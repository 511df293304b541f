"""Tests the FairPlay resource loader of the seed in C, C++ and Python: its three ways to get a licence, and device
binding."""

from __future__ import annotations

import json

import pytest
from seeds.ports import LANGUAGES, Ports

from stage import KEY, KID
from usher.testing.headend import Entry, HeadEnd

CONTENT = "movie-1"
CKC_BYTES = 68


@pytest.fixture
def headend() -> HeadEnd:
    with HeadEnd(clock="system", control=False) as running:
        running.add_key(KID, KEY, CONTENT)
        yield running


def routes(headend: HeadEnd) -> list[Entry]:
    return [entry for entry in headend.journal if entry.route in ("ckc", "entitlement", "rights")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_useCase1_onPremiseServer_theApplicationNamesIt(headend: HeadEnd, ports: Ports, language: str) -> None:
    told = ports.run("fairplay_loader", language, "1", headend.fps_url, f"skd://{CONTENT}")
    assert told == [f"CKC {CKC_BYTES}", "event LICENSE", "event PLAYBACK_CLOSED"]
    (sent,) = routes(headend)
    assert (sent.route, sent.header("x-asset")) == ("ckc", "on-premise")


@pytest.mark.parametrize("language", LANGUAGES)
def test_useCase2_entitlementServer_namesTheTokenURL_andBindsTheDevice(
    headend: HeadEnd, ports: Ports, language: str
) -> None:
    """The first run registers the device (bEnforceDeviceID = false). The second run knows that the device is
    registered, and asks for a token that only this device can use."""
    arguments = ("fairplay_loader", language, "2", headend.entitlement_url, f"skd://{CONTENT}")
    assert ports.run(*arguments) == [
        f"CKC {CKC_BYTES}",
        "event DEVICE_REGISTERED",
        "event LICENSE",
        "event PLAYBACK_CLOSED",
    ]
    assert ports.run(*arguments, "device_registered") == [f"CKC {CKC_BYTES}", "event LICENSE", "event PLAYBACK_CLOSED"]
    asked = [json.loads(entry.body) for entry in routes(headend) if entry.route == "entitlement"]
    assert [(body["requestType"], body["contentID"]) for body in asked] == [(2, CONTENT), (3, CONTENT)]
    assert [entry.route for entry in routes(headend)] == ["entitlement", "rights"] * 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_useCase2_entitlementDenied_isTheErrorOfTheLoadingRequest(
    headend: HeadEnd, ports: Ports, language: str
) -> None:
    headend.deny(CONTENT, "not in your package", 17)
    told = ports.run("fairplay_loader", language, "2", headend.entitlement_url, f"skd://{CONTENT}", status=1)
    assert any("REFUSED" in line and "not in your package" in line for line in told)
    assert [entry.route for entry in routes(headend)] == ["entitlement"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_useCase3_tokenURLInTheContent_itsSchemeIsReplaced(headend: HeadEnd, ports: Ports, language: str) -> None:
    url = "skd" + headend.rights_token_url(CONTENT).removeprefix("http") + f"&x=1;{CONTENT}"
    told = ports.run("fairplay_loader", language, "3", "-", url)
    assert told == [f"CKC {CKC_BYTES}", "event LICENSE", "event PLAYBACK_CLOSED"]
    (sent,) = routes(headend)
    assert "skd" + headend.url.removeprefix("http") + sent.path == url
