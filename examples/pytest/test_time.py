"""Heartbeats, zaps and sleep, on virtual time: an hour takes milliseconds."""

import pytest

import usher
from pytest_usher import KEY, KID


def test_heartbeats_anHour_oneEachPeriod(stage):
    stage.play()
    stage.advance(3_600_000)
    stage.expect.heartbeats(60, every_ms=60_000)
    stage.expect.tokens_fresh()


@pytest.mark.usher_headend(period_s=10)
def test_heartbeats_shorterPeriodOfTheServer_isKept(stage):
    stage.play()
    stage.advance(60_000)
    stage.expect.heartbeats(6, every_ms=10_000)


@pytest.mark.usher_headend(limit=1)
def test_zap_everyTime_teardownComesBeforeSetup(stage):
    for _ in range(4):
        stage.play()
        stage.advance(30_000)
    stage.expect.teardown_before_setup()
    stage.expect.sessions(1)


def test_stop_afterPlaying_givesTheSessionBack(stage):
    stage.play()
    stage.advance(90_000)
    stage.player.stop()
    stage.settle()
    stage.expect.routes("setup", "heartbeat", "teardown")
    stage.expect.torn_down()


@pytest.mark.usher_breaks_rules("late-beat")
def test_laptop_sleepsLongerThanTheLease_losesTheSession(stage):
    stage.play()
    stage.settle()
    stage.sleep(3_600_000)
    assert stage.headend.sessions.in_state("expired")
    assert stage.events.error(usher.EventType.HEARTBEAT_ERROR).must_stop


def test_licence_whileTheSessionLives_hasTheKey(stage):
    playback = stage.play()
    playback.wait_session()
    license = playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]))
    assert license.clear_keys() == {KID: KEY}
    stage.expect.routes("setup", "license")
