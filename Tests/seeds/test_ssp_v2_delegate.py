"""The licence delegate for SSM V2 (seed S1), ported to C, C++ and Python."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack

import pytest
from seeds.clips import Clip
from seeds.ports import LANGUAGES, Host, Ports

from usher.testing.headend import HeadEnd

PORT = "ssp_v2_delegate"


@pytest.fixture
def clip(clips: list[Clip]) -> Clip:
    return clips[1]


def start(ports: Ports, language: str, headend: HeadEnd, *more: str) -> AbstractContextManager[Host]:
    """Starts the host in `language` with its arguments: certificate URL, licence URL, SSM URL, and then `more`. The
    host runs inside a ``with`` block."""
    urls = headend.certificate_url("fairplay"), headend.license_url("fairplay", "v2"), headend.ssm_url
    return ports.host(PORT, language, *urls, *more)


def play(host: Host, headend: HeadEnd, clip: Clip, account: str = "account-1") -> str:
    """The viewer starts the clip; returns its content token."""
    token = headend.content_token(account, clip.content_id)
    host.does("play", clip.file, clip.skd, token)
    return token


@pytest.mark.parametrize("language", LANGUAGES)
def test_stop_thenTeardown_freesTheSlotForTheNextItem(
    headend: HeadEnd, ports: Ports, clip: Clip, language: str
) -> None:
    """The licence request opens the session, and the stop leaves the session at the head-end. Then the application
    tears the session down, so that the account's only slot is free for the next item."""
    with start(ports, language, headend) as host:
        content_token = play(host, headend, clip)
        host.says("SESSION_STARTED", clip.pictures)
        host.does("stop")
        host.says("stopped", "SESSION_ENDED", "PLAYBACK_CLOSED")
        assert len(headend.sessions.active()) == 1
        host.does("teardown")
        host.says("teardown: USHER_OK", "SESSION_ENDED")
        assert not headend.sessions.active()
        play(host, headend, clip)
        host.says("SESSION_STARTED", clip.pictures)
        host.does("stop")
        host.does("teardown")
        host.ends()
    sent = [entry for entry in headend.journal if entry.route != "certificate"]
    assert [entry.route for entry in sent] == ["license", "teardown"] * 2
    assert [part.raw for part in sent[0].parts] == [content_token]
    assert headend.journal.count("certificate") == 1
    assert not headend.sessions.active()
    headend.assert_clean()


@pytest.mark.parametrize("language", LANGUAGES)
def test_stop_withoutTeardown_leavesTheSessionToExpire(
    headend: HeadEnd, ports: Ports, clip: Clip, language: str
) -> None:
    """The application stops the player, and does not tear the session down. The head-end still holds the session, so
    the next item gets a set-up error."""
    with start(ports, language, headend) as host:
        play(host, headend, clip)
        host.says(clip.pictures)
        host.does("stop")
        host.says("stopped", "PLAYBACK_CLOSED")
        play(host, headend, clip)
        (line, _) = host.says("SETUP_ERROR: error 1007 HTTP status code 400 and message ", "no licence: USHER_E_LIMIT")
        assert line.split(" message ")[1].strip()
        host.ends()
    assert [route for route in headend.journal.routes() if route != "certificate"] == ["license", "license"]
    assert len(headend.sessions.active()) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_teardownRefused_postsTheErrorNotification(headend: HeadEnd, ports: Ports, clip: Clip, language: str) -> None:
    """The operator kills the session before the application tears it down; the host gets a teardown error."""
    with start(ports, language, headend) as host:
        play(host, headend, clip)
        host.says(clip.pictures)
        host.does("stop")
        host.says("PLAYBACK_CLOSED")
        headend.kill_account("account-1")
        host.does("teardown")
        (line,) = host.says("TEARDOWN_ERROR: error ")
        sent = headend.journal.last("teardown")
        assert f"error {sent.error_code} HTTP status code {sent.status} and message " in line
        host.ends()


@pytest.mark.parametrize("language", LANGUAGES)
def test_airplay_asksTokenForANewOne_andTheLicenceUsesIt(
    headend: HeadEnd, ports: Ports, clip: Clip, language: str
) -> None:
    """Playback moves to AirPlay, which needs a further licence; the library calls token(), and the licence request with
    the new token opens a new session."""
    fresh = headend.content_token(content_id=clip.content_id)
    with start(ports, language, headend, fresh) as host:
        first = play(host, headend, clip)
        host.says(clip.pictures)
        host.does("airplay")
        host.says("token()", clip.pictures)
        host.does("stop")
        host.does("teardown")
        host.ends()
    sent = [entry for entry in headend.journal if entry.route != "certificate"]
    assert [entry.route for entry in sent] == ["license", "teardown", "license", "teardown"]
    assert [entry.parts[0].raw for entry in sent if entry.route == "license"] == [first, fresh]
    headend.assert_clean()


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
            host.does("picture-in-picture" if host is hosts[2] else "background")
        for host in hosts:
            host.says("KEPT_ALIVE")
            host.does("foreground")
        for account in accounts.values():
            headend.kill_account(account)
        for host in hosts:
            (line, _, _) = host.says("HEARTBEAT_ERROR: error ", "stopped", clip.pictures)
            assert " HTTP status code 40" in line and line.split(" message ")[1].strip(), line
            host.does("stop")
            host.does("teardown")
        for host in hosts:
            host.ends()
        for account in accounts.values():
            routes = [route for route in headend.journal.routes(account=account) if route != "certificate"]
            assert routes[0] == "license" and routes.count("heartbeat") >= 2, routes
            assert [route for route in routes if route != "heartbeat"][-2:] == ["license", "teardown"], routes
    assert not headend.sessions.active()
