"""The SSP licence delegate with SSM v1 (seed S0), ported to C, C++ and Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest
from seeds.clips import Clip
from seeds.ports import LANGUAGES, PATIENCE_S, Host, Ports

from usher.testing.headend import Fault, HeadEnd

PORT = "ssp_delegate"

CLOSED = ("SESSION_ENDED", "PLAYBACK_CLOSED")


@pytest.fixture(autouse=True)
def slots_are_free(headend: HeadEnd) -> Iterator[None]:
    """After each test, the head-end holds no session."""
    yield
    assert not headend.sessions.active()


@pytest.fixture
def clip(clips: list[Clip]) -> Clip:
    return clips[1]


def start(
    ports: Ports, language: str, headend: HeadEnd, *more: str, sync: bool = False
) -> AbstractContextManager[Host]:
    """Starts the host in `language` with its arguments: certificate URL, licence URL, SSM URL, `sync`, and then `more`.
    The host runs inside a ``with`` block."""
    urls = headend.certificate_url("fairplay"), headend.license_url("fairplay"), headend.ssm_url
    return ports.host(PORT, language, *urls, str(int(sync)), *more)


def play(host: Host, headend: HeadEnd, clip: Clip, account: str = "account-1") -> str:
    """The viewer starts the clip; returns its content token."""
    token = headend.content_token(account, clip.content_id)
    host.does("play", clip.file, clip.skd, token)
    return token


@pytest.mark.parametrize("language", LANGUAGES)
def test_playback_hasASession_withLicenceAndTeardown(headend: HeadEnd, ports: Ports, clip: Clip, language: str) -> None:
    """The host plays an encrypted clip; the library sets a session up, sends its token with the licence request, and
    tears the session down when the host de-initialises the item."""
    with start(ports, language, headend) as host:
        content_token = play(host, headend, clip)
        host.says("SESSION_STARTED", clip.pictures)
        host.does("stop")
        host.says("stopped", *CLOSED)
        host.ends()
    sent = [entry for entry in headend.journal if entry.route != "certificate"]
    assert [entry.route for entry in sent] == ["setup", "license", "teardown"]
    assert headend.journal.count("certificate") == 1
    parts = [part.raw for part in sent[1].parts]
    assert len(parts) == 2 and parts[0] == content_token
    headend.assert_clean()


@pytest.mark.parametrize("language", LANGUAGES)
def test_sync_blocksPlayAndTheEndOfTheItem(headend: HeadEnd, ports: Ports, clip: Clip, language: str) -> None:
    """The head-end answers set-up and teardown after 150 ms, and the host uses a sync delegate. play() returns when the
    session is set up, and the call that ends the item returns when the session is torn down."""
    headend.faults.add("setup", Fault.delay(150))
    headend.faults.add("teardown", Fault.delay(150))
    with start(ports, language, headend, sync=True) as host:
        play(host, headend, clip)
        host.says("play: USHER_OK, session active", clip.pictures)
        host.does("stop")
        (line,) = host.says("stopped after ")
        assert int(line.split()[2]) >= 140, line
        assert headend.journal.last("teardown").status == 200
        host.ends()


@pytest.mark.parametrize("language", LANGUAGES)
def test_withoutSync_playAndTheEndOfTheItemReturnAtOnce(
    headend: HeadEnd, ports: Ports, clip: Clip, language: str
) -> None:
    """The head-end holds set-up and teardown back, and the host uses a delegate that is not sync. play() and the call
    that ends the item return while the requests are held."""
    headend.faults.add("setup", Fault.stall())
    headend.faults.add("teardown", Fault.stall())
    with start(ports, language, headend) as host:
        play(host, headend, clip)
        host.says("play: USHER_OK, session pending")
        headend.wait_held(timeout=PATIENCE_S)
        headend.release()
        host.says(clip.pictures)
        host.does("stop")
        host.says("stopped")
        headend.wait_held(timeout=PATIENCE_S)
        headend.release()
        host.says(*CLOSED)
        host.ends()


@pytest.mark.parametrize("language", LANGUAGES)
def test_setupRefused_postsTheErrorNotification_andTheLicenceFails(
    headend: HeadEnd, ports: Ports, clip: Clip, language: str
) -> None:
    """Another screen has the account's only session. The host gets a set-up error with error code, HTTP status and
    message. The licence request fails, and the library does not send it."""
    with start(ports, "C", headend) as other, start(ports, language, headend) as host:
        play(other, headend, clip)
        other.says(clip.pictures)
        play(host, headend, clip)
        (line, _) = host.says("SETUP_ERROR: error 1007 HTTP status code 400 and message ", "no licence: USHER_E_LIMIT")
        assert line.split(" message ")[1].strip()
        host.does("stop")
        host.says("PLAYBACK_CLOSED")
        other.does("stop")
        other.says(*CLOSED)
        host.ends(), other.ends()
    assert headend.journal.routes().count("license") == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_teardownRefused_postsTheErrorNotification(headend: HeadEnd, ports: Ports, clip: Clip, language: str) -> None:
    """The operator kills the session before the host ends the item; the host gets a teardown error."""
    with start(ports, language, headend) as host:
        play(host, headend, clip)
        host.says(clip.pictures)
        headend.kill_account("account-1")
        host.does("stop")
        (line, *_) = host.says("TEARDOWN_ERROR: error ", "PLAYBACK_CLOSED")
        sent = headend.journal.last("teardown")
        assert f"error {sent.error_code} HTTP status code {sent.status} and message " in line
        host.ends()


@pytest.mark.parametrize("language", LANGUAGES)
def test_airplay_asksTokenForANewOne_andTheLicenceUsesIt(
    headend: HeadEnd, ports: Ports, clip: Clip, language: str
) -> None:
    """Playback moves to AirPlay, which needs a further licence; the library calls token(), sets the session up again
    with the new token, and sends this token with the licence request."""
    fresh = headend.content_token(content_id=clip.content_id)
    with start(ports, language, headend, fresh) as host:
        first = play(host, headend, clip)
        host.says(clip.pictures)
        assert not host.said("token()")
        host.does("airplay")
        host.says("token()", clip.pictures)
        host.does("stop")
        host.ends()
    sent = [entry for entry in headend.journal if entry.route != "certificate"]
    assert [entry.route for entry in sent] == ["setup", "license", "teardown", "setup", "license", "teardown"]
    used = [entry.parts[0].raw for entry in sent if entry.route in ("setup", "license")]
    assert used == [first, first, fresh, fresh]
    headend.assert_clean()


@pytest.mark.parametrize("language", LANGUAGES)
def test_airplay_tokenReturnsNil_theLicenceFails(headend: HeadEnd, ports: Ports, clip: Clip, language: str) -> None:
    """token() returns nil for the licence request of AirPlay. This request fails, and the library does not send it."""
    with start(ports, language, headend, "-") as host:
        play(host, headend, clip)
        host.says(clip.pictures)
        host.does("airplay")
        host.says("token()", "no licence: USHER_E_NO_TOKEN")
        host.does("stop")
        host.ends()
    assert headend.journal.routes().count("license") == 1


@pytest.mark.parametrize("headend", [1], indirect=True, ids=["every second"])
def test_background_heartbeatsContinue_andAHeartbeatErrorLeadsToAZap(
    headend: HeadEnd, ports: Ports, clip: Clip
) -> None:
    """The hosts go to the background or to picture-in-picture and back: heartbeats continue, and playback resumes.
    Then the operator kills the sessions: each host gets a heartbeat error and zaps to the same stream, which plays
    under a new session."""
    with ExitStack() as stack:
        hosts = [stack.enter_context(start(ports, language, headend)) for language in LANGUAGES]
        accounts = {host: f"account-{number}" for number, host in enumerate(hosts)}
        for host, account in accounts.items():
            play(host, headend, clip, account)
        for host in hosts:
            host.says(clip.pictures)
            host.does("picture-in-picture" if host is hosts[1] else "background")
        for host in hosts:
            host.says("KEPT_ALIVE")
            host.does("foreground")
        for account in accounts.values():
            headend.kill_account(account)
        for host in hosts:
            (line, _, _) = host.says("HEARTBEAT_ERROR: error ", "stopped", clip.pictures)
            assert " HTTP status code 40" in line and line.split(" message ")[1].strip(), line
            host.does("stop")
        for host in hosts:
            host.ends()
        for account in accounts.values():
            routes = [route for route in headend.journal.routes(account=account) if route != "certificate"]
            beats = routes.count("heartbeat")
            assert beats >= 2 and routes[:2] == ["setup", "license"], routes
            assert [route for route in routes if route != "heartbeat"][-3:] == ["setup", "license", "teardown"], routes
