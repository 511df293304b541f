"""Tests SSP V2: the licence request opens the session, the reply says what keeps the session alive, and the host need
not tear it down."""

from __future__ import annotations

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.v2 import PAYLOAD, SYSTEMS, delegate, licence, play
from usher.testing.headend import V2, Fault, SessionState
from usher.testing.headend.config import KEY_SYSTEMS, KeySystem

E = usher.EventType
T = usher.CloseMode.TEARDOWN
RENEWING: tuple[KeySystem, ...] = ("clearkey", "fairplay", "playready")


# ---- the licence request sets the session up -------------------------------------------------------------------------


@pytest.mark.shows("v2-play-sends-nothing")
def test_play_asksNothingOfAnyServer(stage: Stage) -> None:
    playback = play(stage)
    stage.advance(600_000)
    assert stage.routes() == []
    assert playback.session_state is usher.SessionState.PENDING
    playback.close()
    stage.settle()
    assert (stage.routes(), stage.events.types()) == ([], ["PLAYBACK_CLOSED"])


@pytest.mark.parametrize("key_system", KEY_SYSTEMS)
def test_firstLicence_setsTheSessionUp_andTeardownEndsIt(stage: Stage, key_system: KeySystem) -> None:
    playback = play(stage, key_system)
    got = licence(playback, key_system)
    assert (got.period_ms, got.renew_type) == (60_000, usher.RenewType.HEARTBEAT)
    assert playback.session_state is usher.SessionState.ACTIVE
    session = stage.headend.sessions.only()
    assert session.created_by == "license"
    sent = stage.sent("license")[0]
    assert sent.session_token is None, "the first request carries only the content token"
    assert len(sent.parts) == 1
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license", "teardown"]
    assert stage.events.types() == ["SESSION_STARTED", "LICENSE", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert not stage.events.only(E.SESSION_ENDED).left


def test_sessionStarted_tellsThePeriod(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"period_s": 17.5})
    playback = play(stage)
    licence(playback)
    assert stage.events.wait(E.SESSION_STARTED).period_ms == 17_500
    playback.close(T)


def test_tenantHeader_isSentWhereGiven(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"v2": V2(tenant="required")})
    playback = play(stage, extra_headers="nv-tenant-id: TENANT1")
    licence(playback)
    playback.close(T)
    stage.settle()
    assert {entry.tenant_id for entry in stage.headend.journal} == {"TENANT1"}


def test_furtherLicence_isGivenUnderTheSession(stage: Stage) -> None:
    """The second licence request of a playback (key rotation) carries the content token and the session token; it opens
    no session."""
    playback = play(stage)
    licence(playback)
    assert licence(playback).clear_keys() == {KID: KEY}
    assert len(stage.headend.sessions) == 1
    assert stage.seqs() == [("license", None), ("license", 1)]
    playback.close(T)


def test_severalLicencesAtOnce_theFirstSetsUp_theOthersWaitForIt(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"token_rotation": "none"})
    playback = play(stage)
    stage.headend.faults.add("license", Fault.stall())
    futures = [playback.request_license(SYSTEMS["clearkey"], PAYLOAD["clearkey"]) for _ in range(4)]
    stage.headend.wait_held()
    stage.settle()
    assert stage.routes() == ["license"], "the other requests wait for the session"
    stage.headend.release()
    for future in futures:
        assert future.result(10).clear_keys() == {KID: KEY}
    assert len(stage.headend.sessions) == 1
    assert stage.routes() == ["license"] * 4
    playback.close(T)


@pytest.mark.breaks_rules("stale-token")
def test_severalLicencesAtOnce_ofAServerThatTakesOnlyTheNewestToken_areRepeatedOneByOne(stage: Stage) -> None:
    """Each reply brings a new session token. If several requests are in flight, only the first to arrive has a valid
    token; the library sends the others again."""
    playback = play(stage)
    licence(playback)
    futures = [playback.request_license(SYSTEMS["clearkey"], PAYLOAD["clearkey"]) for _ in range(4)]
    for future in futures:
        assert future.result(10).clear_keys() == {KID: KEY}
    assert len(stage.headend.sessions) == 1
    stage.settle()
    assert stage.events.all(E.LICENSE_ERROR) == []
    playback.close(T)


# ---- keeping it alive ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key_system", KEY_SYSTEMS)
def test_heartbeats_keepItAlive_whereTheReplySaysSo(stage: Stage, key_system: KeySystem) -> None:
    playback = play(stage, key_system)
    licence(playback, key_system)
    stage.advance(180_000)
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("heartbeat", 1), ("heartbeat", 2), ("heartbeat", 3), ("teardown", 4)]


@pytest.mark.parametrize("key_system", RENEWING)
def test_renewals_keepItAlive_whereTheReplySaysSo(stage_factory: StageFactory, key_system: KeySystem) -> None:
    stage = stage_factory(headend={"enforced": {key_system}})
    renewed: list[usher.License] = []
    playback = play(
        stage,
        key_system,
        payload=lambda request: PAYLOAD[key_system],
        renewed=lambda p, license: renewed.append(license),
    )
    assert licence(playback, key_system).renew_type is usher.RenewType.ENFORCED
    stage.advance(120_000)
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("license-renewal", 1), ("license-renewal", 2), ("teardown", 3)]
    for entry in stage.sent("license-renewal"):
        assert entry.query_value("renew") == "true"
        assert entry.path.startswith(stage.sent("license")[0].path)
        assert entry.header("nv-authorizations") == entry.session_token.raw, "a renewal carries only the session token"
    assert len(renewed) == 2


def test_renewals_withoutAPayloadCallback_areAskedOfTheHost(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"fairplay"}})
    playback = play(stage, "fairplay")
    licence(playback, "fairplay")
    stage.advance(60_000)
    stage.events.only(E.RENEWAL_DUE)
    licence(playback, "fairplay", type=usher.LicenseType.RENEWAL)
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("license-renewal", 1), ("teardown", 2)]


def test_widevine_enforced_isRenewedByTheCdmAtTheSessionManager(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"enforced": {"widevine"}, "grace": 3.0})
    playback = play(stage, "widevine")
    assert licence(playback, "widevine").renew_type is usher.RenewType.CDM
    stage.advance(59_000)
    licence(playback, "widevine", type=usher.LicenseType.RENEWAL)
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("renewal-wv", 1), ("teardown", 2)]


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("key_system", RENEWING)
def test_enforcedFlag_decidesWhateverTheTokenSays(
    stage_factory: StageFactory, key_system: KeySystem, flag: bool
) -> None:
    stage = stage_factory(headend={"enforced": {key_system} if flag else set()})
    playback = play(stage, key_system)
    wanted = usher.RenewType.ENFORCED if flag else usher.RenewType.HEARTBEAT
    assert licence(playback, key_system).renew_type is wanted
    playback.close(T)


@pytest.mark.parametrize(
    ("key_system", "wanted"),
    [
        ("fairplay", usher.RenewType.ENFORCED),
        ("playready", usher.RenewType.ENFORCED),
        ("clearkey", usher.RenewType.ENFORCED),
        ("widevine", usher.RenewType.HEARTBEAT),
    ],
)
def test_enforcedFlag_missing_aTokenBesideTheLicenceMeansEnforced(
    stage_factory: StageFactory, key_system: KeySystem, wanted: usher.RenewType
) -> None:
    """If a licence reply has a session token, the session is in enforced mode. Widevine is an exception, because only
    its CDM can make renewals."""
    stage = stage_factory(headend={"enforced": {key_system}, "v2": V2(enforced_field=None)})
    playback = play(stage, key_system)
    assert licence(playback, key_system).renew_type is wanted
    playback.close(T)


@pytest.mark.parametrize("mode", [usher.KeepAlive.HEARTBEAT, usher.KeepAlive.RENEWAL])
def test_keepAliveOption_overrulesTheReply(stage_factory: StageFactory, mode: usher.KeepAlive) -> None:
    stage = stage_factory(headend={"enforced": {"fairplay"} if mode is usher.KeepAlive.HEARTBEAT else set()})
    playback = play(stage, "fairplay", keep_alive=mode, payload=lambda request: PAYLOAD["fairplay"])
    licence(playback, "fairplay")
    stage.advance(60_000)
    assert stage.routes() == ["license", "heartbeat" if mode is usher.KeepAlive.HEARTBEAT else "license-renewal"]
    playback.close(T)


def test_heartbeatRefused_playbackMustStop(stage: Stage) -> None:
    playback = play(stage)
    licence(playback)
    stage.headend.kill_account("account-1")
    stage.advance(60_000)
    error = stage.events.error(E.HEARTBEAT_ERROR)
    assert (error.service_code, error.must_stop) == (1006, True)
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license", "heartbeat"], "no teardown for a session that the server does not know"


# ---- options for the names of the fields in the reply ----------------------------------------------------------------


@pytest.mark.parametrize("key_system", KEY_SYSTEMS)
def test_fieldsElsewhere_areFoundWhereTheOptionsSay(stage_factory: StageFactory, key_system: KeySystem) -> None:
    names = {"token_field": "session.token", "period_field": "session.keepAlive.seconds", "enforced_field": "enforced"}
    stage = stage_factory(headend={"v2": V2(**names), "period_s": 7})  # type: ignore[arg-type]
    playback = play(stage, key_system, **names)
    got = licence(playback, key_system)
    assert (got.period_ms, got.renew_type) == (7_000, usher.RenewType.HEARTBEAT)
    stage.advance(7_000)
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("heartbeat", 1), ("teardown", 2)]


@pytest.mark.leaves_session
def test_fieldsElsewhere_withoutTheOptions_areNotGuessed(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"v2": V2(token_field="session.token")})
    playback = play(stage)
    assert licence(playback).clear_keys() == {KID: KEY}
    stage.settle()
    stage.events.only(E.NO_SESSION)
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license"]


@pytest.mark.parametrize("heartbeat", ["heartbeat", "heartBeat", "HEARTBEAT"])
def test_periodField_inAnyCase_isFound(stage_factory: StageFactory, heartbeat: str) -> None:
    stage = stage_factory(headend={"v2": V2(period_field=heartbeat), "period_s": 9})
    playback = play(stage)
    assert licence(playback).period_ms == 9_000
    playback.close(T)


@pytest.mark.parametrize(("option", "period_ms", "beats"), [(0, 60_000, 2), (45_000, 45_000, 3), (usher.OFF, 0, 0)])
def test_periodMissing_theOptionSaysWhich(stage_factory: StageFactory, option: int, period_ms: int, beats: int) -> None:
    stage = stage_factory(headend={"v2": V2(period_field=None), "grace": 10.0})
    playback = play(stage, period_default_ms=option)
    assert licence(playback).period_ms == period_ms
    stage.advance(150_000)
    assert stage.routes() == ["license"] + ["heartbeat"] * beats
    playback.close(T)


@pytest.mark.parametrize(
    ("period", "wanted_ms"),
    [
        (0, 0),
        (-1, 60_000),
        ("60", 60_000),
        (None, 60_000),
        ([], 60_000),
        (True, 60_000),
        (1e300, 86_400_000),
        (0.001, 1000),
    ],
)
def test_periodOfNoUse_isTheDefaultOrTheNearestOfUse(
    stage_factory: StageFactory, period: object, wanted_ms: int
) -> None:
    stage = stage_factory(headend={"grace": 10.0})
    stage.headend.faults.add("license", Fault.fields(heartbeat=period))
    playback = play(stage)
    assert licence(playback).clear_keys() == {KID: KEY}
    assert stage.events.wait(E.SESSION_STARTED).period_ms == wanted_ms
    playback.close(T)


@pytest.mark.parametrize("key_system", ["fairplay", "widevine"])
def test_token_inAHeaderOfTheReply_isFound(stage_factory: StageFactory, key_system: KeySystem) -> None:
    """The session token may be in a reply header, because a reply with a binary licence has no JSON fields."""
    settings = {"fairplay_reply": "raw"} if key_system == "fairplay" else {}
    stage = stage_factory(headend={"v2": V2(token_field=None, token_header="X-Session-Token"), **settings})
    wire = {"wire_format": usher.WireFormat.RAW} if key_system == "widevine" else {}
    playback = play(stage, key_system, token_reply_header="x-session-token", **wire)
    licence(playback, key_system)
    assert playback.session_state is usher.SessionState.ACTIVE
    stage.advance(60_000)
    playback.close(T)
    stage.settle()
    assert stage.routes()[0] == "license"
    assert stage.routes()[-1] == "teardown"


def test_tokenInBodyAndHeader_theBodysIsUsed(stage: Stage) -> None:
    """The licence server sends one session token in the body and another one in a header; the library uses the token in
    the body."""
    stage.headend.faults.add("license", Fault.header("X-Session-Token", stage.headend.content_token("other")))
    playback = play(stage, token_reply_header="X-Session-Token")
    licence(playback)
    stage.advance(60_000)
    playback.close(T)
    stage.settle()
    assert stage.seqs() == [("license", None), ("heartbeat", 1), ("teardown", 2)]


@pytest.mark.parametrize("name", ["token_field", "period_field", "enforced_field"])
@pytest.mark.parametrize("path", ["", ".", "a.", "a..b", ".a"])
def test_fieldPath_thatIsNone_isRefused(stage: Stage, name: str, path: str) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        delegate(stage, **{name: path})


# ---- no session ------------------------------------------------------------------------------------------------------


def test_reply_withoutToken_playsWithoutASession_andSaysSoOnce(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"ssm_required": "never"})
    playback = play(stage)
    assert licence(playback).renew_type is usher.RenewType.NONE
    licence(playback)
    licence(playback)
    stage.advance(600_000)
    assert playback.session_state is usher.SessionState.NONE
    assert stage.routes() == ["license"] * 3, "no timer"
    stage.events.only(E.NO_SESSION)
    playback.close(T)
    stage.settle()
    assert stage.routes() == ["license"] * 3, "teardown is a no-op"
    assert stage.events.types() == ["NO_SESSION", "LICENSE", "LICENSE", "LICENSE", "PLAYBACK_CLOSED"]


def test_laterReply_withToken_setsTheSessionUpThen(stage_factory: StageFactory) -> None:
    stage = stage_factory()
    stage.headend.faults.add("license", Fault.without("sessionToken", "heartbeat") | Fault.none())
    playback = play(stage, token=stage.headend.content_token(session_control=False))
    licence(playback)
    stage.settle()
    stage.events.only(E.NO_SESSION)
    playback.close(T)


# ---- ending the session: teardown or leaving -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "option", "torn_down"),
    [
        (usher.CloseMode.DEFAULT, False, False),
        (usher.CloseMode.DEFAULT, True, True),
        (usher.CloseMode.TEARDOWN, False, True),
        (usher.CloseMode.TEARDOWN, True, True),
        (usher.CloseMode.LEAVE, False, False),
        (usher.CloseMode.LEAVE, True, False),
    ],
)
def test_close_tearsDownOrLeaves_asModeAndOptionSay(
    stage: Stage, mode: usher.CloseMode, option: bool, torn_down: bool
) -> None:
    playback = play(stage, teardown_on_close=option)
    licence(playback)
    playback.close(mode)
    stage.settle()
    assert stage.routes() == ["license"] + ["teardown"] * torn_down
    assert stage.events.only(E.SESSION_ENDED).left is not torn_down
    assert stage.events.only(E.PLAYBACK_CLOSED).error is None
    stage.headend.advance(120_000)
    assert stage.headend.sessions.all()[0].state is (SessionState.TORN_DOWN if torn_down else SessionState.EXPIRED)


def test_leftSession_isKeptAliveNoMore(stage: Stage) -> None:
    playback = play(stage)
    licence(playback)
    stage.advance(60_000)
    playback.close()
    stage.advance(600_000)
    assert stage.routes() == ["license", "heartbeat"]
    assert stage.headend.sessions.all()[0].state is SessionState.EXPIRED


@pytest.mark.parametrize("how", ["free", "stop", "player closed", "context closed"])
@pytest.mark.parametrize("option", [False, True])
def test_everyOtherEnd_isTheDefaultMode(stage: Stage, how: str, option: bool) -> None:
    player = usher.Player(stage.context)
    playback = play(stage, teardown_on_close=option, player=player)
    licence(playback)
    if how == "free":
        playback.free()
    elif how == "stop":
        player.stop()
    elif how == "player closed":
        player.close()
    else:
        stage.call(stage.context.close).result(10)
    if how != "context closed":
        stage.settle()
    assert stage.routes() == ["license"] + ["teardown"] * option
    stage.headend.advance(120_000)


@pytest.mark.parametrize("leave", [False, True])
def test_zap_tearsDownFirst_orLeavesIt(stage_factory: StageFactory, leave: bool) -> None:
    stage = stage_factory(headend={"limit": 1 + leave})
    first = play(stage, leave_on_zap=leave, tag="first")
    licence(first)
    second = play(stage, tag="second")
    licence(second)
    assert stage.routes() == (["license", "license"] if leave else ["license", "teardown", "license"])
    stage.settle()  # each playback reports its events independently of the other
    assert stage.events.only(E.SESSION_ENDED, "first").left is leave
    second.close(T)
    stage.settle()
    stage.headend.advance(120_000)


def test_stoppedWithLeave_thenTheNextItem_isNoZap(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"limit": 1})
    licence(play(stage))
    stage.player.stop(usher.CloseMode.LEAVE)
    stage.settle()
    second = play(stage)
    with pytest.raises(usher.LimitError):
        licence(second)
    stage.headend.advance(120_000)
    third = play(stage)
    assert licence(third).clear_keys() == {KID: KEY}, "the first session has expired"
    third.close(T)
