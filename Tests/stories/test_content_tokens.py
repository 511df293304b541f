"""Tests the content tokens of SSP playbacks: when the library calls the token callback, what then happens to the
session, and tokens that come late."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import usher
from stage import CHALLENGE, HEADER, KEY, KID, Stage, StageFactory
from stage.tokens import Tokens, played, sent_tokens
from usher.testing.headend import Fault

E = usher.EventType
S = usher.Status
R = usher.Resetup
CLEARKEY = usher.KeySystem.CLEARKEY


# ---- the token callback ----------------------------------------------------------------------------------------------


def test_firstLicence_withATokenFromTheStart_doesNotAsk(stage: Stage) -> None:
    """The first licence request uses the token that the host gave to play() (protocol.md: Licences)."""
    tokens = Tokens(stage, single_use=True)
    initial = stage.headend.content_token()
    assert stage.clear_keys(played(stage, tokens, initial)) == {KID: KEY}
    assert tokens.requests == []
    assert sent_tokens(stage, "setup") == sent_tokens(stage, "license") == [initial]


def test_firstLicence_withoutAToken_asksOnceForSetupAndLicence(stage: Stage) -> None:
    """Without an initial token, the library asks the token callback once, and uses the token for set-up and first
    licence (protocol.md: Licences)."""
    tokens = Tokens(stage, single_use=True)
    assert stage.clear_keys(played(stage, tokens, None)) == {KID: KEY}
    assert len(tokens.requests) == 1
    assert sent_tokens(stage, "setup") == sent_tokens(stage, "license") == tokens.given


@pytest.mark.parametrize("policy", [R.CALLBACK_ONLY, R.ALWAYS])
def test_furtherLicence_asksForATokenAndSetsUpAgain(stage: Stage, policy: usher.Resetup) -> None:
    """The host requests a further licence, e.g. because playback moves to AirPlay. The library asks for a new token,
    ends the old session and sets up a new one (SSM v1 page; protocol.md: Licences)."""
    tokens = Tokens(stage, single_use=True)
    playback = played(stage, tokens, stage.headend.content_token(), resetup_on_extra_license=policy)
    stage.clear_keys(playback)
    assert stage.clear_keys(playback) == {KID: KEY}
    assert stage.routes() == ["setup", "license", "teardown", "setup", "license"]
    assert sent_tokens(stage, "setup")[1:] == sent_tokens(stage, "license")[1:] == tokens.given
    first, second = (entry.session for entry in stage.sent("setup"))
    assert [entry.session for entry in stage.sent("license")] == [first, second]
    assert stage.sent("teardown")[0].session == first
    stage.advance(60_000)
    assert [entry.session for entry in stage.sent("heartbeat")] == [second]
    assert stage.events.types().count("SESSION_STARTED") == 2
    assert "PLAYBACK_CLOSED" not in stage.events.types()


def test_furtherLicence_withResetupNever_usesTheSessionWithANewToken(stage: Stage) -> None:
    """With `resetup_on_extra_license` NEVER, the library asks the callback for a token for a further licence (e.g.
    after key rotation), and uses the same session (protocol.md: Licences)."""
    tokens = Tokens(stage, single_use=True)
    playback = played(stage, tokens, stage.headend.content_token(), resetup_on_extra_license=R.NEVER)
    stage.clear_keys(playback)
    assert stage.clear_keys(playback) == {KID: KEY}
    assert stage.routes() == ["setup", "license", "license"]
    assert sent_tokens(stage, "license")[1:] == tokens.given


def test_furtherLicence_withoutACallback_asPolicySays(stage_factory: StageFactory) -> None:
    """Without a token callback, a further licence request carries the original token again; `resetup_on_extra_license`
    decides whether the library sets the session up again (protocol.md: Licences)."""
    for policy, routes in [
        (R.CALLBACK_ONLY, ["setup", "license", "license"]),
        (R.NEVER, ["setup", "license", "license"]),
        (R.ALWAYS, ["setup", "license", "teardown", "setup", "license"]),
    ]:
        stage = stage_factory()
        token = stage.headend.content_token()
        playback = played(stage, None, token, resetup_on_extra_license=policy)
        stage.clear_keys(playback)
        assert stage.clear_keys(playback) == {KID: KEY}
        assert stage.routes() == routes
        assert set(sent_tokens(stage, "license")) == {token}


@pytest.mark.parametrize("policy", list(R))
def test_audioAndVideo_ofOneStart_areUnderOneSession(stage: Stage, policy: usher.Resetup) -> None:
    """The host makes two licence requests before the first reply arrives. Both use the same session, and the library
    does not call the token callback (protocol.md: Licences)."""
    tokens = Tokens(stage, single_use=True)
    stage.headend.faults.add("license", Fault.stall("before"), times=2)
    playback = played(stage, tokens, stage.headend.content_token(), resetup_on_extra_license=policy)
    video, audio = (playback.request_license(CLEARKEY, CHALLENGE) for _ in range(2))
    stage.settle()
    assert stage.routes() == ["setup", "license", "license"]
    stage.headend.release()
    assert video.result(10).clear_keys() == audio.result(10).clear_keys() == {KID: KEY}
    stage.settle()
    assert len({entry.session for entry in stage.headend.journal}) == 1
    assert (tokens.requests, stage.routes()) == ([], ["setup", "license", "license"])


def test_renewal_doesNotAskForAToken(stage_factory: StageFactory) -> None:
    """The library calls the token callback only for licence requests; a renewal carries only the session token
    (protocol.md: Licences)."""
    stage = stage_factory(headend={"enforced": {"clearkey"}})
    tokens = Tokens(stage, single_use=True)
    playback = stage.player.play(
        stage.headend.content_token(), delegate=stage.delegate(token_callback=tokens), payload=lambda request: CHALLENGE
    )
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(120_000)
    playback.get_license(CLEARKEY, CHALLENGE, type=usher.LicenseType.RENEWAL)
    assert tokens.requests == []
    assert [entry.header(HEADER).count(",") for entry in stage.sent("license-renewal")] == [0, 0, 0]


@pytest.mark.breaks_rules("late-beat")
def test_renewalFlag_afterAFailedRenewal_isReset(stage_factory: StageFactory) -> None:
    """After a failed renewal, the next request of the host is an ordinary licence request, not a renewal
    (protocol.md: Licences)."""
    stage = stage_factory(headend={"enforced": {"clearkey"}, "grace": 10.0})
    playback = stage.player.play(
        stage.headend.content_token(),
        delegate=stage.delegate(retry_permille=usher.OFF),
        payload=lambda request: CHALLENGE,
    )
    stage.settle()
    stage.clear_keys(playback)
    stage.headend.faults.add("license-renewal", Fault.status(503))
    stage.advance(60_000)
    assert stage.clear_keys(playback) == {KID: KEY}
    entry = stage.headend.journal.last()
    assert (entry.route, entry.query_value("renew"), entry.header(HEADER).count(",")) == ("license", None, 1)


def test_requestsWhileTheCallbackIsAsked_waitForItsOneAnswer(stage: Stage) -> None:
    """While the token callback has not answered, further licence requests wait for its answer. The callback runs only
    once for all these requests (protocol.md: Licences)."""
    tokens = Tokens(stage, usher.LATER)
    playback = played(stage, tokens, stage.headend.content_token())
    stage.clear_keys(playback)
    futures = [playback.request_license(CLEARKEY, CHALLENGE) for _ in range(3)]
    stage.settle()
    assert (len(tokens.requests), stage.routes()) == (1, ["setup", "license"])
    fresh = stage.headend.content_token()
    tokens.requests[0].answer(fresh)
    assert [future.result(10).clear_keys() for future in futures] == [{KID: KEY}] * 3
    assert stage.routes() == ["setup", "license", "teardown", "setup"] + ["license"] * 3
    assert sent_tokens(stage, "license")[1:] == [fresh] * 3


@pytest.mark.parametrize("late", [False, True])
def test_furtherLicence_withoutANewToken_failsAndTheSessionGoesOn(stage: Stage, late: bool) -> None:
    """If the callback has no token or takes longer than 5 s, the licence fails (5022), and the session continues
    (protocol.md: Licences; protocol.md: Races)."""
    tokens = Tokens(stage, usher.LATER if late else None)
    playback = played(stage, tokens, stage.headend.content_token())
    stage.clear_keys(playback)
    future = playback.request_license(CLEARKEY, CHALLENGE)
    stage.advance(5_000 if late else 0)
    error = future.exception(10)
    assert type(error) is usher.NoTokenError
    assert error.legacy_codes.react_native == 5022
    if late:
        with pytest.raises(usher.InvalidCompletionError):
            tokens.requests[0].answer(stage.headend.content_token())
    stage.advance(60_000)
    assert stage.routes() == ["setup", "license", "heartbeat"]
    assert stage.clear_keys(playback) == {KID: KEY}, "the next request asks the token callback again"
    assert len(tokens.requests) == 2


def test_furtherLicence_whoseNewSessionIsRefused_failsWithTheReason(stage: Stage) -> None:
    """If the server refuses the new set-up, the licence request fails with the server's error, and playback must stop
    (protocol.md: Licences)."""
    playback = played(stage, Tokens(stage, single_use=True), stage.headend.content_token())
    stage.clear_keys(playback)
    stage.headend.faults.add("setup", Fault.error(1007))
    with pytest.raises(usher.LimitError):
        stage.clear_keys(playback)
    stage.settle()
    assert stage.events.error(E.SETUP_ERROR).must_stop
    assert playback.session_state is usher.SessionState.FAILED


def test_furtherLicence_withoutSsm_asksForATokenOnly(stage_factory: StageFactory) -> None:
    """Also without SSM the library asks for a fresh token for a further licence, because a token may be valid only once
    (protocol.md: Licences; headend.md: Tokens)."""
    stage = stage_factory(headend={"ssm_required": "never"})
    tokens = Tokens(stage, single_use=True)
    playback = played(stage, tokens, stage.headend.content_token(jti="first"), ssm_url=None)
    for _ in range(3):
        assert stage.clear_keys(playback) == {KID: KEY}
    assert stage.routes() == ["license"] * 3
    assert sent_tokens(stage, "license")[1:] == tokens.given, "each token is valid for one licence"


# ---- tokens that come late -------------------------------------------------------------------------------------------


def wait_for_token(stage: Stage, **options: Any) -> usher.Playback:
    playback = stage.player.play(delegate=stage.delegate(**options))
    stage._playbacks.append(playback)
    stage.settle()
    return playback


@pytest.mark.parametrize("after_ms", [0, 1, 4_999])
def test_lateToken_givenInTime_isUsed(stage: Stage, after_ms: int) -> None:
    """The host can set the token of the current item later; the library waits 5 s for this token
    (delegates.md: Content tokens that come late, or go stale)."""
    playback = wait_for_token(stage)
    future = playback.request_license(CLEARKEY, CHALLENGE)
    stage.advance(after_ms)
    assert (playback.session_state, stage.routes()) == (usher.SessionState.PENDING, [])
    playback.set_content_token(stage.headend.content_token())
    assert future.result(10).clear_keys() == {KID: KEY}
    assert stage.routes() == ["setup", "license"]


def test_lateToken_neverGiven_failsAfter5s(stage: Stage) -> None:
    """Without a token after 5 s, set-up and the waiting licences fail with "content token not available" (5022)
    (delegates.md: Content tokens that come late, or go stale)."""
    playback = wait_for_token(stage)
    future = playback.request_license(CLEARKEY, CHALLENGE)
    stage.advance(4_999)
    assert not stage.events.types()
    stage.advance(1)
    assert type(future.exception(10)) is usher.NoTokenError
    error = stage.events.error(E.SETUP_ERROR)
    assert (error.status, error.legacy_codes.react_native, error.must_stop) == (S.NO_TOKEN, 5022, True)
    with pytest.raises(usher.StateError):
        playback.set_content_token(stage.headend.content_token())
    assert stage.routes() == []


@pytest.mark.parametrize(("wait_ms", "wanted_ms"), [(200, 200), (usher.OFF, 0), (60_000, 60_000)])
def test_lateToken_waitedForAsLongAsToldTo(stage: Stage, wait_ms: int, wanted_ms: int) -> None:
    """The library waits `token_wait_ms` for a token. If the option is OFF, the library does not wait
    (delegates.md: Content tokens that come late, or go stale)."""
    wait_for_token(stage, token_wait_ms=wait_ms)
    if wanted_ms:
        stage.advance(wanted_ms - 1)
        assert not stage.events.types()
        stage.advance(1)
    assert stage.events.error(E.SETUP_ERROR).status is S.NO_TOKEN


def test_lateToken_changedLater_isRefused(stage: Stage) -> None:
    """If a playback already has a token, the library refuses a second token for it
    (delegates.md: Content tokens that come late, or go stale)."""
    playback = wait_for_token(stage)
    first = stage.headend.content_token("first")
    playback.set_content_token(first)
    for _ in range(2):
        with pytest.raises(usher.StateError):
            playback.set_content_token(stage.headend.content_token("second"))
    with_one = stage.play(player=usher.Player(stage.context))
    with pytest.raises(usher.StateError):
        with_one.set_content_token(first)
    stage.settle()
    assert sent_tokens(stage, "setup")[0] == first


@pytest.mark.parametrize("token", ["", "a\nb", "a\rb", "a\0b", "x" * 70_000])
def test_lateToken_thatIsNone_isRefusedAndStillWaitedFor(stage: Stage, token: str) -> None:
    """The library refuses a token that is empty, contains a line break or a NUL, or is too long, and continues to wait
    for a valid token. (The web SDK accepts an empty token.) (protocol.md: Races)."""
    playback = wait_for_token(stage)
    with pytest.raises(usher.InvalidArgumentError):
        playback.set_content_token(token)
    playback.set_content_token(stage.headend.content_token())
    stage.settle()
    assert stage.routes() == ["setup"]


def test_lateToken_forAPlaybackThatEnded_isRefused(stage: Stage) -> None:
    """If a playback is closed, replaced or freed, the library refuses a token for it
    (delegates.md: Content tokens that come late, or go stale)."""
    token = stage.headend.content_token()
    closed = wait_for_token(stage)
    closed.close()
    stage.settle()
    replaced = wait_for_token(stage)
    current = wait_for_token(stage)
    for playback in (closed, replaced):
        with pytest.raises((usher.StateError, usher.ClosedError)):
            playback.set_content_token(token)
    replaced.free()
    with pytest.raises(usher.InvalidHandleError):
        replaced.set_content_token(token)
    current.set_content_token(token)
    stage.settle()
    assert stage.routes() == ["setup"]


def test_lateToken_whileACallbackIsAsked_winsOverIt(stage: Stage) -> None:
    """If the host sets a token before it has answered the token callback, the library uses this token and ends the
    question (protocol.md: Licences; delegates.md: Content tokens that come late, or go stale)."""
    tokens = Tokens(stage, usher.LATER)
    playback = played(stage, tokens, None)
    mine = stage.headend.content_token("mine")
    playback.set_content_token(mine)
    stage.settle()
    assert sent_tokens(stage, "setup") == [mine]
    with contextlib.suppress(usher.InvalidCompletionError):
        tokens.requests[0].answer(stage.headend.content_token("the callback's"))
    stage.settle()
    assert stage.clear_keys(playback) == {KID: KEY}
    assert sent_tokens(stage, "license") == [mine]
    assert stage.routes() == ["setup", "license"]


def test_lateToken_withSync_isGivenByAnotherThread(stage: Stage) -> None:
    """With a sync delegate, play() waits until another thread sets the token and the session is set up. If no token
    comes, play() returns after 5 s (protocol.md: When it fails; protocol.md: Races)."""
    delegate = stage.delegate(sync_setup_teardown=True)
    told: list[usher.Playback] = []
    stage.context.add_observer(lambda event: told.append(event.playback) if event.playback else None)  # type: ignore[arg-type]
    playing = stage.call(lambda: stage.player.play(delegate=delegate))
    stage.wait_timer(5_000)
    assert stage.still_waiting(playing)
    stage.advance(5_000)
    playback = playing.result(10)
    assert stage.events.error(E.SETUP_ERROR).status is S.NO_TOKEN
    assert playback.session_state is usher.SessionState.FAILED
