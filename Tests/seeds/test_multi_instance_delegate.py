"""Several players at the same time (seed S2), ported to C, C++ and Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest
from seeds.clips import MEDIA, Clip
from seeds.ports import LANGUAGES, Host, Ports

from usher.testing.headend import Entry, HeadEnd

PORT = "multi_instance"


@pytest.fixture
def headend(token_form: str) -> Iterator[HeadEnd]:
    with HeadEnd(clock="system", control=False, token_rotation="strict", token_form=token_form) as running:
        running.add_media(MEDIA)
        yield running


def start(ports: Ports, language: str, headend: HeadEnd, kind: str) -> AbstractContextManager[Host]:
    urls = headend.certificate_url("fairplay"), headend.license_url("fairplay"), headend.ssm_url
    return ports.host(PORT, language, kind, *urls)


def token(headend: HeadEnd, clip: Clip, kind: str = "own", account: str = "account-1") -> str:
    """Makes a content token. With this token the head-end requires a session only if `kind` is "library", since only
    that delegate sets up sessions."""
    return headend.content_token(account, clip.content_id, session_control=kind == "library")


def licences(headend: HeadEnd) -> list[Entry]:
    return headend.journal.entries(route="license")


@pytest.mark.parametrize("language", LANGUAGES)
def test_clearStreams_onTwoPlayers_needNoDelegate(
    headend: HeadEnd, ports: Ports, clips: list[Clip], language: str
) -> None:
    """The host creates two players and plays a clear stream on each, in a context without a delegate."""
    with start(ports, language, headend, "none") as host:
        for screen, clip in enumerate(clips):
            host.does("clear", screen, clip.clear)
            host.says(clip.pictures)
        host.ends()
    assert not headend.journal.routes()


@pytest.mark.parametrize("language", LANGUAGES)
def test_encryptedAndClearStream_oneTokenIsEnough(
    headend: HeadEnd, ports: Ports, clips: list[Clip], language: str
) -> None:
    """One player plays an encrypted stream, whose token the host has set. The other player plays a clear stream, for
    which the host sets neither token nor content id."""
    with start(ports, language, headend, "library") as host:
        content_token = token(headend, clips[1], "library")
        host.does("token", content_token, clips[1].content_id)
        host.does("play", 0, clips[1].file, clips[1].skd)
        host.does("clear", 1, clips[0].clear)
        host.says(clips[1].pictures, clips[0].pictures)
        host.ends()
    (sent,) = licences(headend)
    assert sent.parts[0].raw == content_token
    assert headend.journal.count("setup") == headend.journal.count("teardown") == 1


@pytest.mark.parametrize("kind", ["own", "library"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_twoEncryptedStreams_eachLicenceHasTheTokenOfItsContent(
    headend: HeadEnd, ports: Ports, clips: list[Clip], language: str, kind: str
) -> None:
    """The host sets two tokens, each with its content id, and plays both streams at the same time; each licence request
    carries the token of its content. A token that the host has removed is not used any more."""
    with start(ports, language, headend, kind) as host:
        tokens = [token(headend, clip, kind) for clip in clips]
        for clip, content_token in zip(clips, tokens, strict=True):
            host.does("token", content_token, clip.content_id)
        for screen, clip in enumerate(clips):
            host.does("play", screen, clip.file, clip.skd)
            host.says(clip.pictures)
        assert [entry.parts[0].raw for entry in licences(headend)] == tokens
        assert len(headend.sessions.active()) == 2 * (kind == "library")
        host.does("stop", 0)
        host.does("stop", 1)
        host.does("remove", clips[0].content_id)
        host.does("play", 1, clips[1].file, clips[1].skd)
        host.says(clips[1].pictures)
        assert licences(headend)[2].parts[0].raw == tokens[1]
        if kind == "own":  # the library waits 5 s for a late token, see test_multi_instance.py
            host.does("play", 0, clips[0].file, clips[0].skd)
            host.says("no licence: USHER_E_DECLINED")
        host.ends()
    assert len(licences(headend)) == 3 and not headend.sessions.active()
    headend.assert_clean()


@pytest.mark.parametrize("language", LANGUAGES)
def test_defaultDelegate_isToldTheHeaderOfTheNextStream(
    headend: HeadEnd, ports: Ports, clips: list[Clip], language: str
) -> None:
    """The default delegate serves one stream: before each stream the host sets the header of its licence request."""
    with start(ports, language, headend, "default") as host:
        tokens = [token(headend, clip) for clip in clips]
        for clip, content_token in zip(clips, tokens, strict=True):
            host.does("header", content_token)
            host.does("play", 0, clip.file, clip.skd)
            host.says(clip.pictures)
        host.ends()
    assert [entry.parts[0].raw for entry in licences(headend)] == tokens
