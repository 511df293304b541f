"""Replies bring session tokens in another order than the order in which the head-end made them, and replies are lost
while other requests are in flight (docs/protocol.md: Races)."""

from __future__ import annotations

import pytest

import usher
from stage import KID, Stage, StageFactory, v2
from usher.testing.headend import Fault

E = usher.EventType
PERIOD_MS = 3000
"""The period. It is shorter than the time-out of a licence request, so that heartbeats are due while the request is in
flight."""
CLEAR_KEY = usher.clear_key_request([KID])
UNKNOWN = 1006


def ask(playback: usher.Playback) -> object:
    return playback.request_license(usher.KeySystem.CLEARKEY, CLEAR_KEY)


# ---- a token that arrives late ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("teardown", ["answered", "503"])
def test_licenseReply_afterTwoHeartbeats_doesNotReplaceTheirToken(stage_factory: StageFactory, teardown: str) -> None:
    """The head-end issues token 2 with a licence, but the reply arrives only after two heartbeats have brought the
    tokens 3 and 4. The library tears the session down with token 4."""
    stage = stage_factory(
        headend={"period_s": PERIOD_MS // 1000, "token_rotation": "accept_previous", "enforced": {"clearkey"}}
    )
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = stage.play(payload=lambda request: CLEAR_KEY)
    stage.settle()
    ask(playback)
    stage.headend.wait_held()
    stage.advance(2 * PERIOD_MS)
    stage.headend.release()
    stage.settle()
    if teardown == "503":
        stage.headend.faults.add("teardown", Fault.status(503))
    playback.close()
    stage.advance(500)
    assert stage.seqs()[:4] == [("setup", None), ("license", 1), ("heartbeat", 1), ("heartbeat", 3)]
    assert set(stage.seqs()[4:]) == {("teardown", 4)}
    assert not stage.headend.sessions.active()
    assert "TEARDOWN_ERROR" not in stage.events.types()


def test_licenseReply_afterTwoHeartbeats_renewalsContinueWithTheNewestToken(stage_factory: StageFactory) -> None:
    """The head-end issues token 2 with a licence, but the reply arrives only after two heartbeats have brought the
    tokens 3 and 4. The library renews the licence with token 4, so the session stays alive."""
    stage = stage_factory(
        headend={"period_s": PERIOD_MS // 1000, "token_rotation": "accept_previous", "enforced": {"clearkey"}}
    )
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = stage.play(payload=lambda request: CLEAR_KEY)
    stage.settle()
    ask(playback)
    stage.headend.wait_held()
    stage.advance(2 * PERIOD_MS)
    stage.headend.release()
    stage.advance(2 * PERIOD_MS)
    assert stage.seqs()[4:] == [("license-renewal", 4), ("license-renewal", 5)]
    assert playback.session_state is usher.SessionState.ACTIVE
    assert "HEARTBEAT_ERROR" not in stage.events.types()


# ---- replies that are lost or refused while others are in flight -----------------------------------------------------


@pytest.mark.leaves_session
@pytest.mark.parametrize("then", ["heartbeat", "close"])
def test_licenseReply_lostWhileAHeartbeatIsInFlight_mayLeaveAnOrphan(stage_factory: StageFactory, then: str) -> None:
    """The network loses a licence reply with a new token while a heartbeat is in flight. The reply to this heartbeat
    arrives after the loss. When the head-end then refuses the old token as unknown, the library reports
    orphan_possible."""
    stage = stage_factory(headend={"period_s": PERIOD_MS // 1000, "grace": 4.0, "enforced": {"clearkey"}})
    stage.headend.faults.add("license", Fault.stall() | Fault.drop("after"))
    stage.headend.faults.add("heartbeat", Fault.stall() | Fault.reply(200, body={}))
    playback = stage.play()
    stage.settle()
    ask(playback)
    stage.headend.wait_held()
    stage.advance(PERIOD_MS)
    stage.headend.release("license")
    stage.settle()
    stage.headend.release("heartbeat")
    stage.settle()
    assert stage.events.all(E.KEPT_ALIVE)
    if then == "heartbeat":
        stage.advance(PERIOD_MS)
        error = stage.events.error(E.HEARTBEAT_ERROR)
    else:
        playback.close()
        stage.settle()
        error = stage.events.error(E.TEARDOWN_ERROR)
    assert error.service_code == UNKNOWN
    assert error.orphan_possible
    assert len(stage.headend.sessions.active()) == 1


def test_heartbeat_refusedWhileLicensesFollowEachOther_isReported(stage_factory: StageFactory) -> None:
    """The head-end refuses a heartbeat (1006, unknown session) while a licence request is in flight, and the host makes
    further licence requests. The library does not send them. When the reply to the first licence request has arrived,
    the library reports the heartbeat error."""
    stage = stage_factory(headend={"period_s": PERIOD_MS // 1000})
    stage.headend.faults.add("license", Fault.stall(), always=True)
    stage.headend.faults.add("heartbeat", Fault.error(UNKNOWN), always=True)
    playback = stage.play()
    stage.settle()
    ask(playback)
    stage.headend.wait_held()
    stage.advance(PERIOD_MS)
    late = [playback.request_license(usher.KeySystem.CLEARKEY, CLEAR_KEY) for _ in range(3)]
    stage.settle()
    assert stage.routes() == ["setup", "license", "heartbeat"]
    stage.headend.release()
    stage.settle()
    assert stage.events.error(E.HEARTBEAT_ERROR).service_code == UNKNOWN
    for future in late:
        with pytest.raises(usher.SessionError):
            future.result(5)
    stage.headend.kill_account("account-1")
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "license", "heartbeat"]


@pytest.mark.breaks_rules("late-beat")
@pytest.mark.parametrize("teardown", ["answered", "503"])
def test_widevineRenewal_refusedWhileAHeartbeatIsInFlight_keepsTheHeartbeatsToken(
    stage_factory: StageFactory, teardown: str
) -> None:
    """The head-end refuses a Widevine renewal with a final error while the retry of a heartbeat is in flight. The
    session has failed. But the library takes the token from the reply to the heartbeat, and tears the session down with
    it."""
    stage = stage_factory(headend={"period_s": PERIOD_MS // 1000, "enforced": {"widevine"}})
    stage.headend.faults.add("license", Fault.stall("after"))
    stage.headend.faults.add("heartbeat", Fault.stall() | Fault.status(503))
    stage.headend.faults.add("heartbeat", Fault.stall("after"))
    stage.headend.faults.add("renewal-wv", Fault.stall() | Fault.status(404))
    playback = stage.play(key_system="widevine")
    stage.settle()
    playback.request_license(usher.KeySystem.WIDEVINE, v2.PAYLOAD["widevine"])
    stage.headend.wait_held()
    stage.advance(PERIOD_MS)
    stage.headend.release("license")
    stage.settle()
    stage.headend.release("heartbeat")
    stage.settle()
    renewal = playback.request_license(usher.KeySystem.WIDEVINE, v2.PAYLOAD["widevine"], type=usher.LicenseType.RENEWAL)
    stage.advance(1000)
    stage.headend.release("renewal-wv")
    with pytest.raises(usher.HTTPStatusError):
        renewal.result(5)
    if teardown == "503":
        stage.headend.faults.add("teardown", Fault.status(503))
    stage.headend.release()
    stage.settle()
    playback.close()
    stage.advance(500)
    assert stage.headend.journal.last("teardown").session_token.seq == 2
    assert not stage.headend.sessions.active()


# ---- teardown --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["503", "lost"])
def test_teardown_refusedAsUnknownOnTheSecondAttempt_isAnErrorUnlessTheFirstMayHaveWorked(
    stage: Stage, first: str
) -> None:
    """The head-end answers the second attempt of a teardown with 1006. If the head-end answered the first attempt with
    503, it has not executed the teardown, so the library reports a teardown error. If the first reply was lost, the
    first attempt has ended the session, so the library reports no error."""
    stage.headend.faults.add("teardown", Fault.status(503) if first == "503" else Fault.drop("after"))
    playback = stage.play()
    stage.settle()
    playback.close()
    stage.settle()
    stage.headend.kill_account("account-1")
    stage.advance(500)
    assert stage.routes() == ["setup", "teardown", "teardown"]
    assert len(stage.events.all(E.TEARDOWN_ERROR)) == (1 if first == "503" else 0)


# ---- leaving a session that is being opened --------------------------------------------------------------------------


@pytest.mark.leaves_session
def test_close_leavingWhileSetupIsInFlight_isReportedAsLeft(stage: Stage) -> None:
    """The host leaves a session whose set-up is in flight. The library sends nothing, and SESSION_ENDED has `left`."""
    stage.headend.faults.add("setup", Fault.stall("after"))
    playback = stage.play()
    stage.headend.wait_held()
    playback.close(usher.CloseMode.LEAVE)
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["setup"]
    assert stage.events.types() == ["SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert stage.events.only(E.SESSION_ENDED).left


@pytest.mark.leaves_session
def test_v2Close_whileALicenseOpensTheSession_isReportedAsLeft(stage: Stage) -> None:
    """The host closes a V2 playback, which leaves the session by default, while the licence request that opens it is in
    flight. The library sends nothing, and SESSION_ENDED has `left`."""
    stage.headend.faults.add("license", Fault.stall("after"))
    playback = v2.play(stage)
    stage.settle()
    v2.ask(playback)
    stage.headend.wait_held()
    playback.close()
    stage.headend.release()
    stage.settle()
    assert stage.routes() == ["license"]
    assert stage.events.only(E.SESSION_ENDED).left


# ---- odd replies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [False, "false", "False", 0, "0"])
def test_sessionDrmEnforced_falseInAnyForm_isKeptAliveByHeartbeats(stage_factory: StageFactory, value: object) -> None:
    """The head-end's reply says, in different forms of JSON, that Widevine renewals do not keep the session alive; the
    library sends heartbeats."""
    stage = stage_factory(headend={"enforced": {"widevine"}})
    stage.headend.faults.add("license", Fault.fields(sessionDrmEnforced=value))
    playback = stage.play(key_system="widevine")
    stage.settle()
    playback.get_license(usher.KeySystem.WIDEVINE, v2.PAYLOAD["widevine"])
    stage.advance(120_000)
    assert stage.headend.journal.count("heartbeat") == 2


# ---- another session -------------------------------------------------------------------------------------------------


def test_refusalUnderTheOldSession_saysNothingAboutTheNewOne(stage_factory: StageFactory) -> None:
    """The head-end refuses a renewal as unknown (1006) while the reply to another renewal is on its way. The host asks
    for a further licence, so that the library replaces the session. The head-end never replaces a token here, so each
    of the two sessions has only one token. The refusal does not end the new session: the library sends the renewal
    under the new session, and tears the new session down at the end."""
    stage = stage_factory(headend={"token_rotation": "none"})
    playback = stage.play(delegate=stage.delegate(resetup_on_extra_license="always"))
    stage.clear_keys(playback)
    renewal = usher.LicenseType.RENEWAL
    stage.headend.faults.add("license-renewal", Fault.stall("after"))
    held = playback.request_license(usher.KeySystem.CLEARKEY, CLEAR_KEY, type=renewal)
    stage.headend.wait_held()
    stage.headend.faults.add("license-renewal", Fault.error(UNKNOWN))
    refused = playback.request_license(usher.KeySystem.CLEARKEY, CLEAR_KEY, type=renewal)
    stage.settle()
    further = playback.request_license(usher.KeySystem.CLEARKEY, CLEAR_KEY)
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert all(request.result(10).clear_keys() for request in (held, refused, further))
    assert stage.events.all(E.HEARTBEAT_ERROR) == [] and playback.session_state is usher.SessionState.ACTIVE
    playback.close()
    stage.settle()
    assert stage.routes().count("setup") == stage.routes().count("teardown") == 2
    assert not stage.headend.sessions.active()


def test_requestThatTheTeardownOvertakes_isRepeatedUnderTheNewSession(stage_factory: StageFactory) -> None:
    """A renewal is held back on its way, and the host asks for a further licence, so that the library replaces the
    session. The teardown waits for the renewal for 3 s and then overtakes it. The head-end refuses the renewal (1006),
    and the library sends it under the new session."""
    stage = stage_factory(headend={"token_rotation": "none"})
    playback = stage.play(delegate=stage.delegate(resetup_on_extra_license="always"))
    stage.clear_keys(playback)
    stage.headend.faults.add("license-renewal", Fault.stall("before"))
    held = playback.request_license(usher.KeySystem.CLEARKEY, CLEAR_KEY, type=usher.LicenseType.RENEWAL)
    stage.headend.wait_held()
    further = playback.request_license(usher.KeySystem.CLEARKEY, CLEAR_KEY)
    stage.advance(3000)
    stage.headend.release()
    stage.settle()
    assert all(request.result(10).clear_keys() for request in (held, further))
    assert stage.routes().count("license-renewal") == 2
    playback.close()
    stage.settle()
    assert not stage.headend.sessions.active()


def test_twoFurtherLicencesAtOnce_areAnsweredOneAfterTheOther(stage: Stage) -> None:
    """The host makes two further licence requests at the same time, and each of them needs a new session. The library
    replaces the session and sends the first request; after that it replaces the session and sends the second one."""
    playback = stage.play(delegate=stage.delegate(resetup_on_extra_license="always"))
    stage.clear_keys(playback)
    requests = [playback.request_license(usher.KeySystem.CLEARKEY, CLEAR_KEY) for _ in range(2)]
    stage.settle()
    assert all(request.result(10).clear_keys() for request in requests)
    cycle = ["setup", "license"]
    assert stage.routes() == [*cycle, "teardown", *cycle, "teardown", *cycle]
    playback.close()
    stage.settle()
