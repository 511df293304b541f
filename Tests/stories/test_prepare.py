"""The host prepares the next item while the current one plays (docs/delegates.md: prepare the next item)."""

from __future__ import annotations

from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory, v2
from stage.tokens import Tokens, sent_tokens
from usher.testing.headend import Fault

E = usher.EventType
KEEP_MS = 60_000
"""If the host names no time, a prepared item stays prepared for this long."""


@pytest.fixture
def stage(stage_factory: StageFactory) -> Stage:
    """A stage whose head-end has no page at `/`. So the journal also has the requests `HEAD /`, with which the library
    opens connections."""
    return stage_factory(headend={"control": False})


def with_certificate(stage: Stage, tokens: Any, **options: Any) -> usher.SSPDelegate:
    return stage.delegate(token_callback=tokens, certificate_url=stage.headend.certificate_url("fairplay"), **options)


def play(stage: Stage, delegate: usher.Delegate, **options: Any) -> usher.Playback:
    playback = stage.player.play(delegate=delegate, **options)
    stage._playbacks.append(playback)
    return playback


def test_prepare_whileAnItemPlays_doesAllThatTakesNoSlot(stage: Stage) -> None:
    """The library opens a connection, downloads the certificate and gets the content token. The zap then needs none of
    these."""
    stage.play(delegate=stage.delegate(), tag="first")
    stage.settle()
    before = len(stage.headend.journal)
    tokens = Tokens(stage)
    delegate = with_certificate(stage, tokens)
    stage.player.prepare(delegate=delegate, tag="next")
    stage.settle()
    assert set(stage.routes()[before:]) <= {"unknown", "certificate"} and stage.sent("certificate")
    assert [(request.tag, request.playback) for request in tokens.requests] == [("next", None)]
    assert len(stage.headend.sessions.active()) == 1 and stage.events.types() == ["SESSION_STARTED"]
    before = len(stage.headend.journal)
    playback = play(stage, delegate, tag="second")
    assert playback.get_certificate() and stage.clear_keys(playback) == {KID: KEY}
    assert stage.routes()[before:] == ["teardown", "setup", "license"]
    assert (sent_tokens(stage, "setup")[-1], len(tokens.requests)) == (tokens.given[0], 1)
    stage.settle()
    assert stage.events.types("second") == ["SESSION_STARTED", "LICENSE"] and not stage.events.types("next")


def test_prepare_onAFreePlayer_makesTheFirstPlayQuick(stage: Stage) -> None:
    """Set-up and licence use the connection that is open, and the token that the callback gave before."""
    tokens = Tokens(stage)
    delegate = stage.delegate(token_callback=tokens)
    stage.player.prepare(delegate=delegate)
    stage.settle()
    assert (stage.routes(), len(tokens.requests)) == (["unknown"], 1)
    assert stage.clear_keys(play(stage, delegate)) == {KID: KEY}
    assert (stage.routes(), len(tokens.requests)) == (["unknown", "setup", "license"], 1)


def test_prepare_withSSPV2_sendsNoLicenceRequest(stage: Stage) -> None:
    tokens = Tokens(stage)
    delegate = v2.delegate(stage, token_callback=tokens, teardown_on_close=True)
    stage.player.prepare(delegate=delegate)
    stage.settle()
    assert (stage.routes(), len(tokens.requests)) == (["unknown"], 1)
    assert v2.licence(play(stage, delegate)).data
    assert (stage.routes(), len(tokens.requests)) == (["unknown", "license"], 1)


def test_prepare_whoseTokenComesAfterThePlay_isNotAskedAgain(stage: Stage) -> None:
    """The host plays the prepared item before its token callback has answered. The library uses this answer, and does
    not call the callback again."""
    tokens = Tokens(stage, hold=True)
    delegate = stage.delegate(token_callback=tokens)
    stage.player.prepare(delegate=delegate)
    stage.settle()
    playback = play(stage, delegate, tag="played")
    stage.settle()
    assert "setup" not in stage.routes()
    tokens.requests[0].answer(stage.headend.content_token())
    stage.settle()
    assert (playback.session_state, len(tokens.requests)) == (usher.SessionState.ACTIVE, 1)
    assert stage.events.types("played") == ["SESSION_STARTED"]


def test_prepare_whoseTokenComesWhileTheZapWaits_isUsed(stage: Stage) -> None:
    """The host gives the token for the prepared item after play(), while the teardown of the earlier item is in flight.
    The library uses this token, and does not call the token callback again."""
    stage.play()
    stage.settle()
    tokens = Tokens(stage, hold=True)
    delegate = stage.delegate(token_callback=tokens)
    stage.player.prepare(delegate=delegate)
    stage.settle()
    stage.headend.faults.add("teardown", Fault.stall())
    playback = play(stage, delegate)
    stage.settle()
    tokens.requests[0].answer(stage.headend.content_token())
    stage.settle()
    assert stage.routes()[-1] == "teardown"
    stage.headend.release()
    stage.settle()
    assert (playback.session_state, len(tokens.requests)) == (usher.SessionState.ACTIVE, 1)


def test_prepare_whoseTokenCallbackHasNone_changesNothing(stage: Stage) -> None:
    """The token callback has no token for the prepared item. No event reports this; when the host plays the item, the
    library calls the callback again."""
    tokens = Tokens(stage, None)
    delegate = stage.delegate(token_callback=tokens)
    stage.player.prepare(delegate=delegate)
    stage.settle()
    assert stage.events.types() == []
    assert stage.clear_keys(play(stage, delegate)) == {KID: KEY}
    assert len(tokens.requests) == 2


def test_prepare_whoseCertificateFails_changesNothing(stage: Stage) -> None:
    """The server refuses the certificate for the prepared item. The next request for the certificate downloads it."""
    stage.headend.faults.add("certificate", Fault.error(4000, status=500))
    delegate = with_certificate(stage, Tokens(stage))
    stage.player.prepare(delegate=delegate)
    stage.settle()
    assert play(stage, delegate).get_certificate()
    assert len(stage.sent("certificate")) == 2


def test_prepare_twiceForTheSameItem_asksForOneToken(stage: Stage) -> None:
    """The host prepares the same item three times. Each further call only starts the time `keep_ms` again; the library
    asks for one token."""
    tokens = Tokens(stage)
    delegate = stage.delegate(token_callback=tokens)
    for _ in range(3):
        stage.player.prepare(delegate=delegate, content_id=b"news")
        stage.advance(KEEP_MS - 1)
    play(stage, delegate, content_id=b"news")
    stage.settle()
    assert len(tokens.requests) == 1


@pytest.mark.parametrize("change", [{"content_id": b"sport"}, {"content_token": "another"}, {"clear": True}])
def test_play_ofAnotherItemThanThePrepared_dropsIt(stage: Stage, change: dict[str, Any]) -> None:
    """The host plays another item than the prepared one. The library drops the prepared item, and refuses a late answer
    to its token question. It calls the token callback again only if the new item needs a token and has none."""
    tokens = Tokens(stage, hold=True)
    delegate = stage.delegate(token_callback=tokens)
    stage.player.prepare(delegate=delegate, content_id=b"news")
    stage.settle()
    if "content_token" in change:
        change = {"content_token": stage.headend.content_token()}
    playback = play(stage, delegate, tag="other", **{"content_id": b"news", **change})
    stage.settle()
    with pytest.raises(usher.InvalidCompletionError):
        tokens.requests[0].answer(stage.headend.content_token())
    assert len(tokens.requests) == (2 if "content_id" in change else 1)
    playback.close()
    stage.settle()
    assert stage.events.types("other")[-1] == "PLAYBACK_CLOSED"
    assert len([name for name in stage.events.types() if name == "PLAYBACK_CLOSED"]) == 1


def test_prepare_forAnotherItem_replacesTheFirst(stage: Stage) -> None:
    tokens = Tokens(stage, hold=True)
    delegate = stage.delegate(token_callback=tokens)
    for name in (b"news", b"sport"):
        stage.player.prepare(delegate=delegate, content_id=name, tag=name)
        stage.settle()
    with pytest.raises(usher.InvalidCompletionError):
        tokens.requests[0].answer(stage.headend.content_token())
    tokens.requests[1].answer(stage.headend.content_token())
    assert stage.clear_keys(play(stage, delegate, content_id=b"sport")) == {KID: KEY}
    assert [request.tag for request in tokens.requests] == [b"news", b"sport"]


def test_prepare_afterItsTime_isDropped(stage: Stage) -> None:
    """After `keep_ms` the prepared token may be too old. So the library drops the prepared item, and asks for a new
    token when the host plays the item."""
    tokens = Tokens(stage)
    delegate = stage.delegate(token_callback=tokens)
    stage.player.prepare(delegate=delegate, keep_ms=5_000)
    stage.advance(5_000)
    assert stage.clear_keys(play(stage, delegate)) == {KID: KEY}
    assert len(tokens.requests) == 2
    stage.settle()
    assert stage.events.types() == ["SESSION_STARTED", "LICENSE"]


@pytest.mark.parametrize("end", ["player", "context"])
def test_prepare_thenTheEndOfThePlayer_leavesNothing(stage: Stage, end: str) -> None:
    """The player or the context ends before the token callback has answered for the prepared item. No event reports
    this, and the library refuses a later answer."""
    tokens = Tokens(stage, hold=True)
    delegate = stage.delegate(token_callback=tokens)
    player = usher.Player(stage.context)
    player.prepare(delegate=delegate)
    stage.settle()
    if end == "player":
        player.close()
        stage.settle()
    else:
        stage.context.close()
    with pytest.raises(usher.UsherError):
        tokens.requests[0].answer(stage.headend.content_token())
    assert stage.events.types() == []


def test_prepare_afterALongerConnectAhead_keepsTheLongerTime(stage: Stage) -> None:
    delegate = stage.delegate()
    delegate.connect_ahead(usher.OFF)
    stage.player.prepare("token", delegate=delegate, keep_ms=1)
    stage.advance(2 * KEEP_MS)
    assert len(stage.headend.journal) > KEEP_MS // 15_000


def test_prepare_withATokenMap_usesItsNewestToken(stage: Stage) -> None:
    """With a multi-instance delegate, the library takes the token from the map when the host plays the item. So it uses
    a token that the host has set after prepare()."""
    delegate = usher.MultiInstanceDelegate(
        stage.context,
        license_url=stage.headend.license_url("clearkey"),
        ssm_url=stage.headend.ssm_url,
        jitter_permille=usher.OFF,
    )
    old, new = (stage.headend.content_token(serial=serial) for serial in ("old", "new"))
    delegate.tokens["news"] = old
    stage.player.prepare(delegate=delegate, content_id="news")
    stage.settle()
    delegate.tokens["news"] = new
    play(stage, delegate, content_id="news")
    stage.settle()
    assert sent_tokens(stage, "setup") == [new]


def test_prepare_inPumpedMode_asksTheTokenInThePump(stage_factory: StageFactory) -> None:
    stage = stage_factory(headend={"control": False}, callbacks="pumped")
    tokens = Tokens(stage)
    delegate = stage.delegate(token_callback=tokens)
    stage.player.prepare(delegate=delegate)
    assert not tokens.requests
    stage.settle()
    assert len(tokens.requests) == 1
    play(stage, delegate)
    stage.settle()
    assert (stage.routes(), len(tokens.requests)) == (["unknown", "setup"], 1)


def test_prepare_withWrongArguments_isRefused(stage: Stage) -> None:
    player = usher.Player(stage.context)
    with pytest.raises(usher.NoDelegateError):
        player.prepare("token")
    with pytest.raises(usher.InvalidArgumentError):
        player.prepare("line\nbreak", delegate=stage.delegate())
    player.close()
    with pytest.raises(usher.InvalidHandleError):
        player.prepare("token", delegate=stage.delegate())
    other, delegate = usher.Player(stage.context), stage.delegate()
    stage.context.begin_close()
    with pytest.raises(usher.ClosedError):
        other.prepare("token", delegate=delegate)
