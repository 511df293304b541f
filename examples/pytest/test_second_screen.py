"""The limit of concurrent streams: who may play, who is refused, and what frees a slot.

The first test, with its imports, shows everything that a first test needs.
"""

import pytest

import usher


@pytest.mark.usher_headend(limit=1)
def test_secondScreen_limitOne_isRefused(stage):
    stage.play(screen="living room").wait_session()
    second = stage.play(screen="tablet")
    with pytest.raises(usher.LimitError):
        second.wait_session()
    stage.expect.refused("setup", 1007)


@pytest.mark.usher_headend(limit=1)
def test_firstScreen_whileTheSecondIsRefused_playsOn(stage):
    stage.play(screen="living room").wait_session()
    stage.play(screen="tablet")
    stage.advance(600_000)
    stage.expect.sessions(1)
    stage.expect.heartbeats(10, every_ms=60_000)


@pytest.mark.usher_headend(limit=1)
def test_secondScreen_firstHasStopped_plays(stage):
    stage.play(screen="living room").wait_session()
    stage.screen("living room").stop()
    stage.settle()
    stage.play(screen="tablet").wait_session()
    stage.expect.routes("setup", "teardown", "setup")


@pytest.mark.usher_headend(limit=1)
def test_otherAccount_limitOfTheFirstIsReached_plays(stage):
    stage.play(screen="living room", account="alice").wait_session()
    stage.play(screen="tablet", account="bob").wait_session()
    stage.expect.sessions(1, account="alice")
    stage.expect.sessions(1, account="bob")


@pytest.mark.parametrize("limit", [1, 3])
def test_screens_anyLimit_onlySoManyPlay(stage_factory, limit):
    stage = stage_factory({"limit": limit})
    for name in ("living room", "tablet", "phone", "kitchen"):
        stage.play(screen=name)
        stage.settle()
    stage.expect.sessions(limit)
    stage.expect.refused("setup", 1007, times=4 - limit)
