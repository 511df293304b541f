"""What a player does when the head-end or the network fails. Most faults are written as in toxiproxy or WireMock."""

import pytest

import usher


@pytest.mark.usher_faults("heartbeat", {"kind": "status", "status": 503}, times=2)
def test_heartbeat_twoTimes503_sessionLives(stage):
    stage.play()
    stage.advance(180_000)
    stage.expect.sessions(1)


@pytest.mark.usher_faults("setup", "EMPTY_RESPONSE", times=9)
def test_setup_serverHangsUp_isATransportError(stage):
    playback = stage.play()
    stage.settle()
    with pytest.raises(usher.TransportError):
        playback.wait_session()


@pytest.mark.parametrize("fault", ["MALFORMED_RESPONSE_CHUNK", "RANDOM_DATA_THEN_CLOSE"])
@pytest.mark.usher_leaves_session("the reply with its token is unreadable")
def test_setup_unreadableReply_isAnErrorAndNoCrash(stage, fault):
    stage.headend.faults.add("setup", fault)
    stage.play()
    stage.settle()
    assert "SETUP_ERROR" in stage.events.types()


@pytest.mark.usher_faults("setup", {"type": "slicer", "attributes": {"average_size": 16, "size_variation": 8}})
def test_setup_replyInSlices_plays(stage):
    stage.play().wait_session()


@pytest.mark.usher_faults("heartbeat", {"type": "latency", "attributes": {"latency": 2000, "jitter": 500}}, times=3)
def test_heartbeats_slowNetwork_stayOnTime(stage):
    stage.play()
    stage.advance(240_000)
    stage.expect.tokens_fresh()
    stage.expect.clean()


def test_operator_killsTheSession_playerStops(stage):
    stage.play(account="alice")
    stage.settle()
    stage.headend.kill_account("alice")
    stage.advance(60_000)
    assert stage.events.error(usher.EventType.HEARTBEAT_ERROR).must_stop


def test_tls_ofTheHeadEnd_isTrusted(stage_factory):
    stage = stage_factory({"tls": True})
    stage.play().wait_session()
