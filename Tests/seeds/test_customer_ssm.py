"""The application's own session management (seed S3), ported to C, C++ and Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from seeds.clips import MEDIA, Clip
from seeds.ports import LANGUAGES, Host, Ports

from usher.testing.headend import HeadEnd

PORT = "customer_ssm"


@pytest.fixture
def start_headend(token_form: str) -> Iterator[Callable[..., HeadEnd]]:
    """Starts a head-end with a short period, for an account whose limit is one session. The application sends all
    requests."""
    running: list[HeadEnd] = []

    def start(**settings: Any) -> HeadEnd:
        headend = HeadEnd(
            clock="system",
            control=False,
            period_s=0.1,
            grace=200,
            limit=1,
            token_rotation="strict",
            token_form=token_form,
            **settings,
        ).start()
        running.append(headend)
        headend.add_media(MEDIA)
        return headend

    yield start
    for headend in running:
        headend.stop()


@pytest.fixture
def clip(clips: list[Clip]) -> Clip:
    return clips[1]


def start(ports: Ports, language: str, headend: HeadEnd, renew_type: str) -> AbstractContextManager[Host]:
    urls = headend.certificate_url("fairplay"), headend.license_url("fairplay"), headend.ssm_url
    return ports.host(PORT, language, *urls, renew_type)


def play(host: Host, headend: HeadEnd, clip: Clip) -> str:
    """The viewer starts the clip. Returns the content token that the host uses for it."""
    token = headend.content_token(content_id=clip.content_id)
    host.does("play", clip.file, clip.skd, token)
    return token


@pytest.mark.parametrize(
    ("language", "renew_type"), [*((language, "default") for language in LANGUAGES), ("C", "enforced")]
)
def test_pairOfCallbacks_renewsTheLicenceEachPeriod_byDefault(
    start_headend: Callable[..., HeadEnd], ports: Ports, clip: Clip, language: str, renew_type: str
) -> None:
    """The application makes the delegate with its certificate, and sets license() and heartbeat(). It sets no renewal
    type, or the renewal type enforced. The library calls license() for the first licence, and then for a renewal in
    each period. Each call has the key system as the SDK writes it, and the same payload. The library never calls
    heartbeat()."""
    headend = start_headend(enforced={"fairplay"})
    with start(ports, language, headend, renew_type) as host:
        content_token = play(host, headend, clip)
        host.says("license(FairPlay, request)", clip.pictures)
        for _ in range(2):
            host.says("license(FairPlay, renewal)", "renewed: CKC of 68 bytes")
        host.does("stop")
        host.says("stopped: 200")
        assert not host.said("heartbeat()") and not host.said("RENEWAL_DUE")
        host.ends()
    sent = [entry for entry in headend.journal if entry.route != "certificate"]
    assert [entry.route for entry in sent][:2] == ["setup", "license"] and sent[-1].route == "teardown"
    assert {entry.route for entry in sent[2:-1]} == {"license-renewal"} and len(sent) >= 5
    assert sent[1].parts[0].raw == content_token
    assert {entry.body for entry in sent[1:-1]} == {sent[1].body}
    assert not headend.sessions.active()
    headend.assert_clean(ignore={"late-beat"})


@pytest.mark.parametrize("language", LANGUAGES)
def test_heartbeatCallback_returningIsDone(
    start_headend: Callable[..., HeadEnd], ports: Ports, clip: Clip, language: str
) -> None:
    """The application sets the renewal type heartbeat. Each period the library calls heartbeat(), which has no
    parameters and no result; the heartbeat succeeds when heartbeat() returns. The library asks for no renewal."""
    headend = start_headend()
    with start(ports, language, headend, "heartbeat") as host:
        play(host, headend, clip)
        host.says("license(FairPlay, request)", clip.pictures)
        for _ in range(2):
            host.says("heartbeat(): 200", "KEPT_ALIVE")
        host.does("stop")
        host.says("stopped: 200")
        assert len(host.said("license(")) == 1 and not host.said("HEARTBEAT_ERROR")
        host.ends()
    routes = [route for route in headend.journal.routes() if route != "certificate"]
    assert routes[:2] == ["setup", "license"] and routes[-1] == "teardown"
    assert set(routes[2:-1]) == {"heartbeat"} and len(routes) >= 5
    assert not headend.sessions.active()
    headend.assert_clean(ignore={"late-beat"})


@pytest.mark.parametrize("language", LANGUAGES)
def test_heartbeatRefused_theApplicationEndsThePlayback(
    start_headend: Callable[..., HeadEnd], ports: Ports, clip: Clip, language: str
) -> None:
    """The operator kills the session, and the operator's server refuses the next heartbeat of the application. The
    application closes the playback in its callback heartbeat(), and the library never calls heartbeat() again."""
    headend = start_headend()
    with start(ports, language, headend, "heartbeat") as host:
        play(host, headend, clip)
        host.says(clip.pictures)
        headend.kill_account("account-1")
        host.says("heartbeat(): 40", "PLAYBACK_CLOSED")
        host.ends()
        assert len(host.said("heartbeat(): 40")) == 1
    refused = [entry.status != 200 for entry in headend.journal.entries(route="heartbeat")]
    assert refused.count(True) == 1 and refused[-1], headend.journal.dump()
    assert headend.journal.count("teardown") == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_licenceNil_failsTheRequest(
    start_headend: Callable[..., HeadEnd], ports: Ports, clip: Clip, language: str
) -> None:
    """The head-end refuses the session set-up of the application, so license() returns no licence. The licence request
    fails."""
    headend = start_headend()
    with start(ports, "C", headend, "heartbeat") as other, start(ports, language, headend, "heartbeat") as host:
        play(other, headend, clip)
        other.says(clip.pictures)
        play(host, headend, clip)
        host.says("license(FairPlay, request)", "no licence: USHER_E_CALLBACK")
        host.ends(), other.ends()
    assert headend.journal.routes().count("license") == 1
