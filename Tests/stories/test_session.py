"""Tests one session from set-up to teardown: the order of its requests, its tokens, its periods, and its end."""

from __future__ import annotations

import itertools

import pytest

import usher
from stage import Stage, StageFactory
from usher.testing.headend import Fault

E = usher.EventType


def test_playback_zappedAfterBeats_keepsTheOrder(stage: Stage) -> None:
    first = stage.play()
    stage.settle()
    assert stage.clear_keys(first)
    stage.advance(2 * 60_000)
    stage.play(tag="second")
    stage.settle()
    assert stage.routes() == ["setup", "license", "heartbeat", "heartbeat", "teardown", "setup"]


def test_sessionToken_rotating_isAlwaysTheNewest(stage: Stage) -> None:
    playback = stage.play()
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(3 * 60_000)
    playback.close()
    stage.settle()
    assert stage.seqs() == [
        ("setup", None),
        ("license", 1),
        ("heartbeat", 1),
        ("heartbeat", 2),
        ("heartbeat", 3),
        ("teardown", 4),
    ]


def test_setupReply_thatComesLate_isFollowedByAHeartbeatWithinTheLease(stage_factory: StageFactory) -> None:
    """The head-end begins the lease of 10 s when it executes set-up; its reply comes 6 s later. One period after the
    reply the lease is over. So the library sends the first heartbeat at 7.5 s, and half a period is left."""
    stage = stage_factory(headend={"period_s": 5})
    stage.headend.faults.add("setup", Fault.delay(6_000, "after"))
    stage.play()
    stage.advance(6_000)
    stage.settle()
    stage.headend.faults.add("heartbeat", Fault.status(503))
    stage.advance(1_500)
    stage.settle()
    assert stage.routes() == ["setup", "heartbeat"]
    stage.advance(22_500)
    stage.settle()
    assert [entry.status for entry in stage.headend.journal] == [200, 503, *[200] * 5]
    assert len(stage.headend.sessions.active()) == 1


def test_licenseHeader_isContentTokenCommaSessionToken(stage: Stage) -> None:
    token = stage.headend.content_token()
    playback = stage.play(token)
    stage.settle()
    stage.clear_keys(playback)
    entry = stage.headend.journal.last("license")
    assert entry.header("nv-authorizations") == f"{token},{entry.session_token.raw}"
    assert stage.headend.journal.last("setup").header_values("nv-authorizations") == [token]


def test_contentToken_withACommaInside_isPassedWhole(stage: Stage) -> None:
    token = stage.headend.content_token_with_key()
    assert "," in token
    playback = stage.play(token)
    stage.settle()
    assert stage.clear_keys(playback)
    assert stage.headend.journal.last("setup").header("nv-authorizations") == token
    assert stage.headend.journal.last("license").header("nv-authorizations").startswith(token + ",")


def test_contentToken_of16kB_passes(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"token_form": "jwt"})
    token = stage.headend.content_token(padding="x" * 13_000)
    assert len(token) >= 16 * 1024
    playback = stage.play(token)
    stage.settle()
    assert stage.clear_keys(playback)


def test_contentToken_thatIsNoJwt_isSentUnread(stage: Stage) -> None:
    """The host gives a content token without claims; the library sends it as it is, and the head-end decides."""
    stage.play("opaque~token=1/x")
    stage.settle()
    sent = stage.headend.journal.last("setup")
    assert sent.header("nv-authorizations") == "opaque~token=1/x"
    assert stage.events.error(E.SETUP_ERROR).service_code == sent.error_code


@pytest.mark.parametrize("key", ["heartbeat", "heartBeat"])
def test_period_inEitherSpelling_isRead(stage_factory: StageFactory, key: str) -> None:
    stage = stage_factory(headend={"heartbeat_key": key, "period_s": 30})
    stage.play()
    stage.settle()
    assert stage.events.only(E.SESSION_STARTED).period_ms == 30_000
    stage.advance(30_000)
    assert stage.routes() == ["setup", "heartbeat"]


def test_period_fractional_beatsThatOften(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"period_s": 0.07})
    stage.play(delegate=stage.delegate(period_min_ms=50))
    stage.advance(350)
    assert stage.events.only(E.SESSION_STARTED).period_ms == 70
    assert stage.routes() == ["setup"] + ["heartbeat"] * 5


@pytest.mark.breaks_rules("late-beat")
def test_period_belowOneSecond_isRaisedAndTheLogSaysSo(stage_factory: StageFactory) -> None:
    """A server asks for 20 heartbeats per second. The library raises the period, so that the server gets one heartbeat
    per second, and logs both periods."""
    stage = stage_factory(headend={"period_s": 0.05, "grace": 50})
    stage.play()
    stage.advance(3000)
    assert stage.events.only(E.SESSION_STARTED).period_ms == 1000
    assert stage.routes() == ["setup"] + ["heartbeat"] * 3
    said = [line for line in stage.logs if "asked for a heartbeat" in line]
    assert len(said) == 1, stage.logs
    assert said[0].endswith("the server asked for a heartbeat every 50 ms; the library sends one every 1000 ms")


def test_periodMax_belowTheDefaultMinimum_isTheOnlyPeriod(stage: Stage) -> None:
    """The host sets period_max_ms below the default of period_min_ms. The library uses period_max_ms as the period of
    every session."""
    stage.play(delegate=stage.delegate(period_max_ms=500))
    stage.settle()
    assert stage.events.only(E.SESSION_STARTED).period_ms == 500


@pytest.mark.parametrize("value", [0, -1, "60", None, True, [], {}, "", -0.5], ids=repr)
def test_period_unusable_isASetupErrorAndTheSlotIsGivenBack(stage: Stage, value: object) -> None:
    stage.headend.faults.add("setup", Fault.fields(heartbeat=value))
    playback = stage.play()
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR)
    assert isinstance(error, usher.ProtocolError)
    assert (error.operation, error.origin, error.must_stop) == (usher.Operation.SETUP, usher.Origin.SSM, True)
    playback.close()
    stage.settle()
    assert not stage.headend.sessions.active()


def test_period_missing_withNoTimerOption_hasASessionWithoutBeats(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.without("heartbeat"))
    delegate = stage.delegate(heartbeat_missing=usher.HeartbeatMissing.NO_TIMER)
    playback = stage.play(delegate=delegate)
    stage.settle()
    assert stage.events.only(E.SESSION_STARTED).period_ms == 0
    stage.advance(100_000)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "teardown"]


def test_period_asText_isReadWhereLenient(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.fields(heartbeat="60"))
    stage.play(delegate=stage.delegate(lenient_numbers=True))
    stage.settle()
    assert stage.events.only(E.SESSION_STARTED).period_ms == 60_000


@pytest.mark.parametrize(
    ("value", "period_ms"),
    [(1e12, 86_400_000), (1e300, 86_400_000), (86_401, 86_400_000), (0.001, 1000), (2**62, 86_400_000)],
)
def test_period_outOfBounds_isBounded(stage: Stage, value: float, period_ms: int) -> None:
    stage.headend.faults.add("setup", Fault.fields(heartbeat=value))
    playback = stage.play()
    stage.settle()
    assert stage.events.only(E.SESSION_STARTED).period_ms == period_ms
    playback.close()
    stage.settle()


def test_period_inABeatsReply_isIgnoredUnlessAsked(stage: Stage) -> None:
    stage.headend.faults.add("heartbeat", Fault.fields(heartbeat=10), always=True)
    stage.play()
    stage.advance(120_000)
    assert stage.routes() == ["setup", "heartbeat", "heartbeat"]


def test_jitter_byDefault_onlyMakesBeatsEarlyByAtMost5Percent(stage: Stage) -> None:
    stage.play(delegate=stage.delegate(jitter_permille=0))
    stage.advance(10 * 60_000)
    times = [e.at_ms for e in stage.headend.journal]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(gaps) >= 10
    assert all(57_000 <= gap <= 60_000 for gap in gaps)


def test_beat_withoutSessionTokenInTheReply_keepsTheOldOne(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"token_rotation": "none"})
    stage.headend.faults.add("heartbeat", Fault.without("sessionToken"))
    stage.play()
    stage.advance(120_000)
    assert stage.events.types() == ["SESSION_STARTED", "KEPT_ALIVE", "KEPT_ALIVE"]


@pytest.mark.shows("v1-teardown-success")
@pytest.mark.parametrize("reply", ["json", "no-content", "text"])
def test_teardown_answeredAnyWay_isASuccess(stage_factory: StageFactory, reply: str) -> None:
    stage = stage_factory(headend={"teardown_reply": reply})
    playback = stage.play()
    stage.settle()
    playback.close()
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert stage.events.only(E.SESSION_ENDED).left is False


@pytest.mark.leaves_session
def test_playback_closedWithLeave_leavesTheSession(stage: Stage) -> None:
    playback = stage.play()
    stage.settle()
    playback.close(usher.CloseMode.LEAVE)
    stage.settle()
    assert stage.routes() == ["setup"]
    assert stage.events.only(E.SESSION_ENDED).left is True


def test_heartbeatStart_afterLicense_waitsForIt(stage: Stage) -> None:
    playback = stage.play(delegate=stage.delegate(heartbeat_start=usher.HeartbeatStart.LICENSE))
    stage.advance(40_000)
    stage.clear_keys(playback)
    stage.advance(59_999)
    assert stage.headend.journal.count("heartbeat") == 0
    stage.advance(1)
    assert stage.headend.journal.count("heartbeat") == 1
    assert stage.headend.violations() != []  # the head-end expects the first heartbeat one period after set-up
    stage.headend.journal.clear()


def test_playback_ofADelegateWithoutSSM_hasNoSession(stage: Stage) -> None:
    token = stage.headend.content_token(session_control=False)
    playback = stage.play(token, delegate=stage.delegate(ssm_url=None))
    stage.settle()
    assert stage.clear_keys(playback)
    assert playback.session_state is usher.SessionState.NONE
    playback.wait_session()
    playback.close()
    stage.settle()
    assert stage.routes() == ["license"]


def test_sessionState_followsTheSession(stage: Stage) -> None:
    stage.headend.faults.add("setup", Fault.stall())
    playback = stage.play()
    stage.settle()
    assert playback.session_state is usher.SessionState.PENDING
    stage.headend.release()
    stage.settle()
    assert playback.session_state is usher.SessionState.ACTIVE
    playback.close()
    stage.settle()
    assert playback.session_state is usher.SessionState.ENDED


def test_playbacks_ofTheSameContent_areTwoSessions(stage: Stage) -> None:
    token = stage.headend.content_token()
    other = usher.Player(stage.context)
    one, two = stage.play(token), stage.play(token, player=other)
    stage.settle()
    assert len(stage.headend.sessions.active()) == 2
    one.close()
    stage.settle()
    assert len(stage.headend.sessions.active()) == 1
    two.close()
    stage.settle()


def test_eventTags_areTheHostsObjects(stage: Stage) -> None:
    mine = object()
    playback = stage.play(tag=mine)
    stage.settle()
    event = stage.events.only(E.SESSION_STARTED)
    assert event.tag is mine
    assert event.playback is playback
    assert event.player is stage.player


@pytest.mark.parametrize("suffix", ["", "/", "//", "/v1", "/v1/"])
def test_ssmUrl_inAnySpelling_isNormalised(stage: Stage, suffix: str) -> None:
    playback = stage.play(delegate=stage.delegate(ssm_url=stage.headend.ssm_url + suffix))
    stage.settle()
    playback.close()
    stage.settle()
    assert [e.path for e in stage.headend.journal] == [
        "/TENANT1/ssm/v1/sessions/setup",
        "/TENANT1/ssm/v1/sessions/teardown",
    ]


def test_ssmUrl_withAQuery_keepsItAfterThePath(stage: Stage) -> None:
    stage.play(delegate=stage.delegate(ssm_url=stage.headend.ssm_url + "?region=eu"))
    stage.settle()
    assert stage.headend.journal.last("setup").path == "/TENANT1/ssm/v1/sessions/setup?region=eu"


def test_requests_carryTheDocumentedHeadersAndBodies(stage: Stage) -> None:
    playback = stage.play(delegate=stage.delegate(extra_headers="nv-tenant-id: TENANT1\nx-correlation-id: 7"))
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(60_000)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "license", "heartbeat", "teardown"]
    for entry in stage.headend.journal:
        assert entry.method == "POST"
        assert entry.header("nv-tenant-id") == "TENANT1"
        assert entry.header("x-correlation-id") == "7"
        assert entry.header("expect") is None
        assert entry.header("user-agent") == f"usher/{usher.library_version()}"
    for route in ("setup", "heartbeat", "teardown"):
        entry = stage.headend.journal.last(route)
        assert entry.body == b"{}"
        assert entry.header("content-type") == "application/json; charset=utf-8"
        assert entry.header("accept") == "application/json"


def test_setupBody_ofTheHost_isSentAsItIs(stage: Stage) -> None:
    body = '{"externalSessionId": "living room", "device": {"id": 7}}'
    playback = stage.play(delegate=stage.delegate(setup_body=body))
    stage.advance(60_000)
    playback.close()
    stage.settle()
    assert [e.body for e in stage.headend.journal] == [body.encode(), b"{}", b"{}"]
    assert stage.headend.journal.last("setup").header("content-type") == "application/json; charset=utf-8"


def test_bodies_emptyByOption_areEmpty(stage: Stage) -> None:
    playback = stage.play(delegate=stage.delegate(setup_body="", keep_alive_body=""))
    stage.advance(60_000)
    playback.close()
    stage.settle()
    assert [e.body for e in stage.headend.journal] == [b"", b"", b""]
    assert [e.header("content-length") for e in stage.headend.journal] == ["0", "0", "0"]


def test_session_overTls_worksWithTheAuthorityAndNotWithout(stage_factory: StageFactory) -> None:
    trusting = stage_factory(headend={"tls": True})
    ca_file = trusting.headend.ca_file
    trusting.context.close()
    stage = stage_factory(headend=trusting.headend, ca_file=ca_file)
    stage.play()
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED"]
    stranger = stage_factory(headend=trusting.headend, ca_file=None)
    stranger.play()
    stranger.settle()
    assert isinstance(stranger.events.error(E.SETUP_ERROR), usher.TLSError)


def test_renewals_missed_areAskedForEveryPeriod(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"clearkey"}, "grace": 50.0})
    playback = stage.play()
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(300_000)
    assert [e.time_ms for e in stage.events.all(E.RENEWAL_DUE)] == [60_000, 120_000, 180_000, 240_000, 300_000]
