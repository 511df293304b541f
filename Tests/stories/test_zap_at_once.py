"""Zaps with the option `zap_without_waiting`: the set-up of the next item goes out together with the teardown of the
earlier one (docs/delegates.md: a zap that does not wait)."""

from __future__ import annotations

from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory, customer, v2
from usher.testing.headend import Fault

E = usher.EventType
S = usher.SessionState


def at_once(stage: Stage, **options: Any) -> usher.SSPDelegate:
    return stage.delegate(zap_without_waiting=True, **options)


def test_zap_belowTheLimit_setsUpWhileTheTeardownIsInFlight(stage: Stage) -> None:
    """The set-up and the licence of the next item do not wait for the teardown; the earlier item's events come when its
    teardown has ended."""
    delegate = at_once(stage)
    first = stage.play(delegate=delegate, tag="first")
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    second = stage.play(delegate=delegate, tag="second")
    stage.settle()
    assert stage.clear_keys(second) == {KID: KEY}
    # The set-up and the teardown use two connections, so the head-end may read either of them first.
    assert sorted(stage.routes()[1:3]) == ["setup", "teardown"] and stage.routes()[3:] == ["license"]
    assert stage.events.types("first") == ["SESSION_STARTED"]
    assert (first.session_state, second.session_state) == (S.ENDED, S.ACTIVE)
    stage.headend.release()
    stage.settle()
    assert stage.events.types("first") == ["SESSION_STARTED", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert len(stage.headend.sessions.active()) == 1


def test_zap_withoutTheOption_waitsForTheTeardown(stage: Stage) -> None:
    """The delegate of the first item has the option, and the delegate of the next item does not. The option of the next
    item's delegate counts, so the set-up waits for the teardown. (The option is off by default.)"""
    stage.play(delegate=at_once(stage))
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    second = stage.play()
    stage.settle()
    assert (stage.routes(), second.session_state) == (["setup", "teardown"], S.PENDING)
    stage.headend.release()
    stage.settle()
    assert (stage.routes(), second.session_state) == (["setup", "teardown", "setup"], S.ACTIVE)


def test_zap_atTheLimit_isRefusedThenSetUpAfterTheTeardown(stage_factory: StageFactory) -> None:
    """The server still holds the earlier session and refuses the set-up with 1007: the library waits for the teardown
    and tries once more. The host sees no error."""
    stage = stage_factory(headend={"limit": 1})
    delegate = at_once(stage)
    stage.play(delegate=delegate)
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    second = stage.play(delegate=delegate, tag="second")
    stage.settle()
    assert (stage.routes().count("setup"), second.session_state) == (2, S.PENDING)
    assert stage.sent("setup")[-1].status == 400
    stage.headend.release()
    stage.settle()
    assert stage.routes()[-1] == "setup"
    assert stage.clear_keys(second) == {KID: KEY}
    stage.settle()
    assert stage.events.types("second") == ["SESSION_STARTED", "LICENSE"]


def test_zaps_atTheLimitOfOne_allPlay(stage_factory: StageFactory) -> None:
    """Ten items play one after another, and the head-end holds back no request. The server may read either the teardown
    or the set-up of a zap first; in both cases the next item gets its session, and the server holds only this
    session."""
    stage = stage_factory(headend={"limit": 1})
    delegate = at_once(stage)
    for number in range(10):
        playback = stage.play(delegate=delegate, tag=number)
        stage.settle()
        assert stage.clear_keys(playback) == {KID: KEY}
        assert len(stage.headend.sessions.active()) == 1
    assert "SETUP_ERROR" not in stage.events.types()


def test_zap_atTheLimit_whoseRetryIsRefused_isALimitError(stage_factory: StageFactory) -> None:
    """The server refuses the set-up, and refuses it again after the teardown, as if another device had taken the slot.
    The library reports a limit error, and sends no further set-up."""
    stage = stage_factory(headend={"limit": 1})
    delegate = at_once(stage)
    stage.play(delegate=delegate)
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    stage.headend.faults.add("setup", Fault.error(1007), always=True)
    stage.play(delegate=delegate, tag="second")
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert stage.events.error(E.SETUP_ERROR, "second").status is usher.Status.LIMIT
    assert stage.routes().count("setup") == 3


@pytest.mark.leaves_session
def test_zap_atTheLimit_whoseTeardownFails_isTriedOnceMore(stage_factory: StageFactory) -> None:
    """The server refuses the teardown and its retry, so it keeps the earlier session. Then the library sends the set-up
    once more, and the server refuses it again. The host gets both errors."""
    stage = stage_factory(headend={"limit": 1})
    delegate = at_once(stage, teardown_retries=1)
    stage.play(delegate=delegate, tag="first")
    stage.settle()
    stage.headend.faults.add("teardown", Fault.error(4000, status=500), always=True)
    stage.play(delegate=delegate, tag="second")
    stage.advance(499)
    assert stage.routes().count("setup") == 2
    stage.advance(1)
    assert stage.events.error(E.TEARDOWN_ERROR, "first").service_code == 4000
    assert stage.events.error(E.SETUP_ERROR, "second").status is usher.Status.LIMIT
    assert stage.routes().count("setup") == 3
    stage.headend.faults.clear()


def test_zap_atTheLimit_whoseTeardownHangs_triesOnceMoreAtTheCap(stage_factory: StageFactory) -> None:
    """The server refuses the set-up, and does not answer the teardown. After `teardown_timeout_ms` the library sends
    the set-up once more, and reports the second refusal."""
    stage = stage_factory(headend={"limit": 1})
    delegate = at_once(stage)
    stage.play(delegate=delegate)
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    stage.play(delegate=delegate, tag="second")
    stage.advance(2_999)
    assert stage.routes().count("setup") == 2
    stage.advance(1)
    assert stage.routes().count("setup") == 3
    assert stage.events.error(E.SETUP_ERROR, "second").status is usher.Status.LIMIT
    stage.headend.release()
    stage.settle()


def test_close_whileTheZapWaitsForItsTeardown_endsBoth(stage_factory: StageFactory) -> None:
    """The host stops while the refused set-up waits: the library sends no further set-up."""
    stage = stage_factory(headend={"limit": 1})
    delegate = at_once(stage)
    stage.play(delegate=delegate, tag="first")
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    stage.play(delegate=delegate, tag="second")
    stage.settle()
    stage.player.stop()
    stage.settle()
    assert stage.events.types("second") == ["PLAYBACK_CLOSED"]
    stage.headend.release()
    stage.settle()
    assert stage.routes().count("setup") == 2
    assert stage.events.types("first")[-1] == "PLAYBACK_CLOSED"
    assert not stage.headend.sessions.active()


def test_zapOverAZap_whileTheSetupIsInFlight_tearsTheLostItemDown(stage: Stage) -> None:
    """The host plays a third item while the set-up of the second item is in flight. The third item does not wait. When
    the reply to that set-up arrives, the library tears the session of the second item down."""
    delegate = at_once(stage)
    stage.play(delegate=delegate, tag="first")
    stage.settle()
    stage.headend.faults.add("setup", Fault.stall("after"))
    stage.play(delegate=delegate, tag="second")
    stage.settle()
    third = stage.play(delegate=delegate, tag="third", account="account-2")
    stage.settle()
    assert third.session_state is S.ACTIVE
    stage.headend.release()
    stage.settle()
    assert stage.events.types("second") == ["SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert [session.account for session in stage.headend.sessions.active()] == ["account-2"]


def test_zap_withSSPV2_asksForTheLicenceAtOnce(stage: Stage) -> None:
    """SSP V2: the licence request that opens the session does not wait for the teardown."""
    delegate = v2.delegate(stage, zap_without_waiting=True, teardown_on_close=True)
    v2.licence(stage.play(delegate=delegate))
    stage.headend.faults.add("teardown", Fault.stall())
    second = stage.play(delegate=delegate, tag="second")
    v2.licence(second)
    stage.settle()
    assert second.session_state is S.ACTIVE
    stage.headend.release()
    stage.settle()


def test_zap_withSSPV2AtTheLimit_asksOnceMoreAfterTheTeardown(stage_factory: StageFactory) -> None:
    """SSP V2: the licence request is refused with 1007, and the library sends it once more after the teardown."""
    stage = stage_factory(headend={"limit": 1})
    delegate = v2.delegate(stage, zap_without_waiting=True, teardown_on_close=True)
    v2.licence(stage.play(delegate=delegate))
    stage.headend.faults.add("teardown", Fault.stall())
    second = stage.play(delegate=delegate, tag="second")
    asked = v2.ask(second)
    stage.settle()
    assert not asked.done()
    stage.headend.release()
    stage.settle()
    assert asked.result(10).data
    assert stage.events.types("second") == ["SESSION_STARTED", "LICENSE"]


def test_zap_withCustomerSSM_callsLicenseBeforeTheTeardownIsAnswered(stage: Stage) -> None:
    """Customer SSM: the library calls `license` for the next item while the teardown callback has not answered."""
    held: list[usher.SessionCall] = []
    portal = customer.Portal(stage, customer.BEATS, zap_without_waiting=True)
    portal.ends = lambda call: (held.append(call), usher.LATER)[1]
    first = customer.play(stage, portal)
    first.get_license(usher.KeySystem.WIDEVINE, b"challenge")
    second = customer.play(stage, portal)
    assert second.get_license(usher.KeySystem.WIDEVINE, b"challenge").data == b"licence"
    stage.settle()
    # Different callback threads call `license` and the teardown callback, so either call may come first.
    assert portal.names[0] == "license" and sorted(portal.names[1:]) == ["license", "teardown"]
    held.pop().answer(None)
    stage.settle()
    portal.ends = lambda call: None


def test_zap_withCustomerSSMAtTheLimit_callsLicenseOnceMore(stage: Stage) -> None:
    """Customer SSM: `license` fails with the code 1007; the library waits for the answer of the teardown callback and
    calls `license` once more."""
    held: list[usher.SessionCall] = []
    refusal = customer.Response(http_status=403, service_code=1007, message="two screens already")
    portal = customer.Portal(stage, customer.BEATS, refusal, customer.BEATS, zap_without_waiting=True)
    portal.ends = lambda call: (held.append(call), usher.LATER)[1]
    customer.play(stage, portal).get_license(usher.KeySystem.WIDEVINE, b"challenge")
    asked = customer.play(stage, portal).request_license(usher.KeySystem.WIDEVINE, b"challenge")
    stage.settle()
    assert (sorted(portal.names), asked.done()) == (["license", "license", "teardown"], False)
    held.pop().answer(None)
    stage.settle()
    assert asked.result(10).data == b"licence"
    assert sorted(portal.names[:3]) == ["license", "license", "teardown"] and portal.names[3:] == ["license"]
    portal.ends = lambda call: None
