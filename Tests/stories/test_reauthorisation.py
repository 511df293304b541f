"""A server denies a content token: the token callback runs once, and the library sends each denied request once more
with the new token."""

from __future__ import annotations

import pytest

import usher
from stage import CHALLENGE, KEY, KID, Stage, StageFactory
from stage.tokens import Tokens, played, sent_tokens
from usher.testing.headend import Fault

E = usher.EventType
S = usher.Status
CLEARKEY = usher.KeySystem.CLEARKEY


@pytest.fixture
def plain(stage_factory: StageFactory) -> Stage:
    """A stage whose licences need no session."""
    return stage_factory(headend={"ssm_required": "never"})


# ---- licences --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("coded", [False, True])
def test_licence_denied_goesOutAgainWithAFreshToken(stage: Stage, status: int, coded: bool) -> None:
    """After 401 or 403, with or without a code, the library asks the token callback for a fresh content token and sends
    the request once more, in the same session (errors.md: Words; protocol.md: Licences)."""
    tokens = Tokens(stage)
    playback = played(stage, tokens)
    stage.headend.faults.add("license", Fault.error(4005, status=status) if coded else Fault.status(status))
    assert stage.clear_keys(playback) == {KID: KEY}
    assert stage.routes() == ["setup", "license", "license"]
    assert sent_tokens(stage, "license")[1:] == tokens.given
    assert "LICENSE_ERROR" not in stage.events.types()


def test_licence_withARevokedToken_goesOnWithAFreshOne(plain: Stage) -> None:
    """The operator revokes the token, so that the head-end itself (not a fault) denies it. With a new token the library
    gets the licence."""
    tokens = Tokens(plain)
    playback = played(plain, tokens, ssm_url=None)
    plain.headend.revoke_tokens()
    assert plain.clear_keys(playback) == {KID: KEY}
    assert plain.sent("license")[0].status in (401, 403)
    assert sent_tokens(plain, "license")[1:] == tokens.given


def test_licences_deniedTogether_shareOneQuestion(plain: Stage) -> None:
    """The library asks the token callback once for all denied requests, and sends each again with the fresh token."""
    tokens = Tokens(plain, hold=True)
    playback = played(plain, tokens, ssm_url=None)
    plain.headend.faults.add("license", Fault.stall("before") | Fault.status(401), times=5)
    futures = [playback.request_license(CLEARKEY, CHALLENGE) for _ in range(5)]
    plain.settle()
    plain.headend.release()
    plain.settle()
    assert (len(tokens.requests), plain.routes()) == (1, ["license"] * 5)
    fresh = plain.headend.content_token()
    tokens.requests[0].answer(fresh)
    assert [future.result(10).clear_keys() for future in futures] == [{KID: KEY}] * 5
    assert (len(tokens.requests), sent_tokens(plain, "license")[5:]) == (1, [fresh] * 5)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("beating", [False, True], ids=["alone", "while a heartbeat is out"])
def test_licences_deniedTogether_underASession_shareOneQuestion(
    stage_factory: StageFactory, status: int, beating: bool
) -> None:
    """The server denies three licence requests of one session. The library gets one new token, and sends all three
    requests again with it."""
    stage = stage_factory(headend={"period_s": 5, "revoked_token_status": status})
    tokens = Tokens(stage, hold=True)
    playback = played(stage, tokens)
    stage.headend.revoke_tokens()
    stage.headend.faults.add("license", Fault.stall("before"), times=3)
    futures = [playback.request_license(CLEARKEY, CHALLENGE) for _ in range(3)]
    if beating:
        stage.headend.faults.add("heartbeat", Fault.stall("after"))
        stage.advance(5_000)
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert len(tokens.requests) == 1
    fresh = stage.headend.content_token()
    tokens.requests[0].answer(fresh)
    assert [future.result(10).clear_keys() for future in futures] == [{KID: KEY}] * 3
    assert (len(tokens.requests), sent_tokens(stage, "license")[-3:]) == (1, [fresh] * 3)
    assert stage.routes().count("setup") == 1
    stage.settle()
    assert "LICENSE_ERROR" not in stage.events.types()


def test_licences_deniedTogether_underASession_andDeniedAgain_failEach(stage: Stage) -> None:
    """If the server denies the new token too, each request fails with the server's error, and the library sends no
    request a third time."""
    tokens = Tokens(stage)
    playback = played(stage, tokens)
    denied = Fault.error(4000, status=403, message="no")
    stage.headend.faults.add("license", Fault.stall("before") | denied, times=3)
    futures = [playback.request_license(CLEARKEY, CHALLENGE) for _ in range(3)]
    stage.settle()
    stage.headend.faults.add("license", denied, always=True)
    stage.headend.release()
    assert [str(future.exception(10))[:2] for future in futures] == ["no"] * 3
    stage.settle()
    assert (len(tokens.requests), stage.routes().count("license")) == (1, 6)


def test_licence_deniedAfterTheFreshTokenCame_goesOutAgainWithoutAsking(plain: Stage) -> None:
    """The server denies a request with the old token after the library has got the new token. The library sends the
    request again with the new token, and does not ask the callback again."""
    tokens = Tokens(plain)
    playback = played(plain, tokens, ssm_url=None)
    plain.headend.faults.add("license", Fault.stall("before") | Fault.status(401))
    futures = [playback.request_license(CLEARKEY, CHALLENGE)]
    plain.settle()
    plain.headend.faults.add("license", Fault.status(401))
    futures.append(playback.request_license(CLEARKEY, CHALLENGE))
    plain.settle()
    plain.headend.release()
    assert [future.result(10).clear_keys() for future in futures] == [{KID: KEY}] * 2
    assert len(tokens.requests) == 1
    assert plain.routes() == ["license"] * 4


@pytest.mark.parametrize("status", [401, 403])
def test_licence_deniedAgain_failsAndNeverLoops(stage: Stage, status: int) -> None:
    """If the server denies the fresh token too, the request fails with the server's error, and the library does not
    retry it a second time."""
    tokens = Tokens(stage)
    playback = played(stage, tokens)
    stage.headend.faults.add("license", Fault.error(4000, status=status, message="no"), always=True)
    with pytest.raises(usher.RefusedError) as caught:
        stage.clear_keys(playback)
    error = caught.value
    assert (error.http_status, error.service_code, error.message, error.origin) == (
        status,
        4000,
        "no",
        usher.Origin.LICENSE,
    )
    assert error.must_stop
    assert (len(tokens.requests), stage.routes()) == (1, ["setup", "license", "license"])
    stage.advance(10_000)
    assert stage.routes() == ["setup", "license", "license"]


def test_licence_deniedAndNoFreshToken_failsWithWhatTheServerSaid(stage: Stage) -> None:
    """If the callback has no new token, the error of the request is the server's denial, not NO_TOKEN."""
    playback = played(stage, lambda request: None)
    stage.headend.faults.add("license", Fault.error(4005, status=403))
    with pytest.raises(usher.RefusedError) as caught:
        stage.clear_keys(playback)
    assert (caught.value.http_status, caught.value.service_code) == (403, 4005)
    assert stage.routes() == ["setup", "license"]


def test_licence_deniedAndTheCallbackLate_failsAtTheDeadline(stage: Stage) -> None:
    """The callback must answer within 5 s; otherwise the error of the request is the server's denial
    (protocol.md: Races)."""
    tokens = Tokens(stage, hold=True)
    playback = played(stage, tokens)
    stage.headend.faults.add("license", Fault.status(401))
    future = playback.request_license(CLEARKEY, CHALLENGE)
    stage.advance(4_999)
    assert not future.done()
    stage.advance(1)
    error = future.exception(10)
    assert type(error) is usher.HTTPStatusError
    assert error.http_status == 401


def test_licence_deniedWithoutACallback_fails(stage: Stage) -> None:
    """Without a token callback the denial is final."""
    playback = played(stage, None)
    stage.headend.faults.add("license", Fault.status(401))
    with pytest.raises(usher.HTTPStatusError) as caught:
        stage.clear_keys(playback)
    assert caught.value.http_status == 401
    assert stage.routes() == ["setup", "license"]


@pytest.mark.parametrize(
    "fault",
    [Fault.error(4005), Fault.status(400), Fault.status(402), Fault.status(404), Fault.status(503)],
)
def test_licence_failedOtherwise_asksNobody(stage: Stage, fault: Fault) -> None:
    """Only 401 and 403 mean that the server denies the token: after any other error the library neither asks for a
    token nor retries (protocol.md: When it fails)."""
    tokens = Tokens(stage)
    playback = played(stage, tokens)
    stage.headend.faults.add("license", fault)
    with pytest.raises(usher.UsherError):
        stage.clear_keys(playback)
    assert (tokens.requests, stage.routes()) == ([], ["setup", "license"])


def test_licence_whoseConnectionEnded_isRepeatedOnceAndAsksNobody(stage: Stage) -> None:
    """When the head-end twice resets the connection instead of replying to a licence request, the library repeats the
    request once, then fails it, and does not ask for a token (protocol.md: When it fails)."""
    tokens = Tokens(stage)
    playback = played(stage, tokens)
    stage.headend.faults.add("license", Fault.reset(), times=2)
    with pytest.raises(usher.TransportError):
        stage.clear_keys(playback)
    assert (tokens.requests, stage.routes()) == ([], ["setup", "license", "license"])
    assert stage.clear_keys(playback) == {KID: KEY}


def test_licence_closedWhileTheCallbackIsAsked_isClosed(stage: Stage) -> None:
    """When the playback closes while the token callback has not answered, the library ends the question and tears the
    session down; a later answer has no effect (protocol.md: Races)."""
    tokens = Tokens(stage, hold=True)
    playback = played(stage, tokens)
    stage.headend.faults.add("license", Fault.status(401))
    future = playback.request_license(CLEARKEY, CHALLENGE)
    stage.settle()
    playback.close()
    assert type(future.exception(10)) is usher.ClosedError
    stage.settle()
    with pytest.raises(usher.InvalidCompletionError):
        tokens.requests[0].answer(stage.headend.content_token())
    assert stage.routes() == ["setup", "license", "teardown"]


def test_licence_deniedMuchLater_asksAgain(plain: Stage) -> None:
    """The library asks for a fresh token once per request: if a later request is denied, the library asks again."""
    tokens = Tokens(plain)
    playback = played(plain, tokens, ssm_url=None)
    for _ in range(2):
        plain.headend.faults.add("license", Fault.status(401))
        assert plain.clear_keys(playback) == {KID: KEY}
    assert len(tokens.requests) == 3, "two for the denials, and one for the second licence"


@pytest.mark.breaks_rules("late-beat")
def test_renewal_denied_isAHeartbeatErrorAndAsksNobody(stage_factory: StageFactory) -> None:
    """A renewal carries no content token, so a new content token would not help: if the server denies a renewal, the
    library reports a heartbeat error (protocol.md: Licences; protocol.md: Races)."""
    stage = stage_factory(headend={"enforced": {"clearkey"}})
    tokens = Tokens(stage)
    playback = stage.player.play(
        stage.headend.content_token(), delegate=stage.delegate(token_callback=tokens), payload=lambda request: CHALLENGE
    )
    stage.settle()
    stage.clear_keys(playback)
    stage.headend.faults.add("license-renewal", Fault.status(401))
    stage.advance(60_000)
    assert stage.events.error(E.HEARTBEAT_ERROR).http_status == 401
    assert tokens.requests == []


# ---- set-up ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_setup_denied_beginsAnewWithAFreshToken(stage: Stage, status: int) -> None:
    """After a denied set-up the library asks for a new token, and sends set-up again with it. The waiting licence
    request uses the new token too."""
    tokens = Tokens(stage)
    stage.headend.faults.add("setup", Fault.status(status))
    playback = played(stage, tokens)
    assert stage.clear_keys(playback) == {KID: KEY}
    assert stage.routes() == ["setup", "setup", "license"]
    assert sent_tokens(stage, "setup")[1:] == sent_tokens(stage, "license") == tokens.given
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED", "LICENSE"]


def test_setup_withARevokedToken_goesOnWithAFreshOne(stage: Stage) -> None:
    """The operator revokes the token before play(), so the head-end denies set-up without a planned fault. With a new
    token the library gets the session."""
    tokens = Tokens(stage)
    old = stage.headend.content_token()
    stage.headend.revoke_tokens()
    playback = stage.player.play(old, delegate=stage.delegate(token_callback=tokens))
    stage.settle()
    assert stage.clear_keys(playback) == {KID: KEY}
    assert sent_tokens(stage, "setup") == [old, *tokens.given]


def test_setup_deniedAgain_isASetupErrorAndNeverLoops(stage: Stage) -> None:
    """If the server denies the new token too, set-up fails, and the library does not send it a third time."""
    tokens = Tokens(stage)
    stage.headend.faults.add("setup", Fault.error(1003, status=401), always=True)
    playback = played(stage, tokens)
    error = stage.events.error(E.SETUP_ERROR)
    assert (error.http_status, error.service_code, error.must_stop) == (401, 1003, True)
    with pytest.raises(usher.RefusedError):
        stage.clear_keys(playback)
    stage.advance(10_000)
    assert (len(tokens.requests), stage.routes()) == (1, ["setup", "setup"])


def test_setup_deniedAndNoFreshToken_isTheServersError(stage: Stage) -> None:
    """If the callback has no new token, the error of set-up is the server's denial."""
    stage.headend.faults.add("setup", Fault.status(403))
    played(stage, lambda request: None)
    error = stage.events.error(E.SETUP_ERROR)
    assert (error.status, error.http_status) == (S.HTTP, 403)
    assert stage.routes() == ["setup"]


def test_setup_closedWhileTheCallbackIsAsked_ends(stage: Stage) -> None:
    """The host closes the playback before the token callback has answered and before a session exists. The close does
    not wait for the answer, and a later answer has no effect (protocol.md: Races)."""
    tokens = Tokens(stage, hold=True)
    stage.headend.faults.add("setup", Fault.status(401))
    playback = played(stage, tokens)
    playback.close()
    stage.settle()
    assert stage.events.types() == ["PLAYBACK_CLOSED"]
    with pytest.raises(usher.InvalidCompletionError):
        tokens.requests[0].answer(stage.headend.content_token())
    stage.settle()
    assert stage.routes() == ["setup"]


def test_setupAndLicence_deniedInTurn_areAskedForEach(stage: Stage) -> None:
    """The server denies set-up, and later the licence request. The library asks for a new token once for each of them,
    and sends each at most twice."""
    tokens = Tokens(stage)
    stage.headend.faults.add("setup", Fault.status(401))
    stage.headend.faults.add("license", Fault.status(401))
    playback = played(stage, tokens)
    assert stage.clear_keys(playback) == {KID: KEY}
    assert stage.routes() == ["setup", "setup", "license", "license"]
    assert len(tokens.requests) == 2


def test_setupDenied_withoutACallback_isASetupError(stage: Stage) -> None:
    """Without a token callback the denial of set-up is final."""
    stage.headend.faults.add("setup", Fault.status(401))
    played(stage, None)
    assert stage.events.error(E.SETUP_ERROR).http_status == 401
    assert stage.routes() == ["setup"]


def test_heartbeat_denied_isFinal(stage: Stage) -> None:
    """A heartbeat carries only the session token, so 401 as the reply to a heartbeat ends the session
    (protocol.md: Races)."""
    tokens = Tokens(stage)
    playback = played(stage, tokens)
    stage.headend.faults.add("heartbeat", Fault.status(401))
    stage.advance(60_000)
    assert stage.events.error(E.HEARTBEAT_ERROR).http_status == 401
    assert playback.session_state is usher.SessionState.FAILED
    assert tokens.requests == []
