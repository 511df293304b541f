"""Tests which URLs a resource loader handles, how long it lives, its time-outs, and loads while the playback has other
requests."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.fps import CDM, CONTENT, MEDIA, SKD, failed, host, loader, play, ready, skd
from usher.testing.headend import Fault

E = usher.EventType


class Told:
    """Records each call of a load's callback."""

    def __init__(self) -> None:
        self.futures: list[Future[bytes]] = []

    def __call__(self, future: Future[bytes]) -> None:
        self.futures.append(future)


# ---- handled or declined ---------------------------------------------------------------------------------------------


def test_load_withoutALoader_isDeclined(stage: Stage) -> None:
    told = Told()
    playback = stage.play()
    with pytest.raises(usher.DeclinedError):
        playback.load_resource(SKD, callback=told)
    with pytest.raises(usher.DeclinedError):
        playback.get_resource(SKD)
    stage.settle()
    assert told.futures == []
    assert stage.routes() == ["setup"]


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/key", "data:text/plain,x", "skdx://movie", "sk", "key.bin", "://", "skd"]
)
def test_load_ofAnotherScheme_isDeclined(stage: Stage, url: str) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    with pytest.raises(usher.DeclinedError):
        play(stage).get_resource(url)
    assert (stage.routes(), cdm.asked) == ([], [])


@pytest.mark.parametrize(
    "url",
    [
        "SKD://movie-1",
        "sKd:movie-1",
        "skd:/movie-1",
        "skd://movie-1/",
        "skd://movie%2D1",
        "skd://movie-1?x=1",
        "skd://movie-1#a",
    ],
)
def test_scheme_inAnyCase_andWithOrWithoutSlashes_isHandled(stage: Stage, url: str) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, content_id_rule=usher.ContentIDRule.DECODED_JSON)
    playback = play(stage)
    if url == "skd:/movie-1":
        assert isinstance(failed(playback, url), usher.RefusedError), "the slash is part of the content id"
        assert cdm.asked[0].content_id == b"/movie-1"
    else:
        assert cdm.opened(playback.get_resource(url)) == (KID, KEY)
        assert (cdm.asked[0].content_id, cdm.asked[0].url) == (b"movie-1", url)


def test_scheme_ofOnesOwn_isHandledInPlaceOfSkd(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, scheme="x-Key+1.0")
    playback = play(stage)
    assert cdm.opened(playback.get_resource("X-KEY+1.0://movie-1")) == (KID, KEY)
    with pytest.raises(usher.DeclinedError):
        playback.get_resource(SKD)


@pytest.mark.parametrize("scheme", ["", "1a", "a b", "a:", "ä", "-a", "a" * 300])
def test_scheme_thatIsNone_isRefused(stage: Stage, scheme: str) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        usher.ResourceLoader(stage.context, CDM(), license_url=stage.headend.fps_url, scheme=scheme)


def test_twoLoaders_ofTwoSchemes_serveSideBySide(stage: Stage) -> None:
    ready(stage)
    ours, theirs = CDM(), CDM()
    loader(stage, ours)
    loader(stage, theirs, scheme="other")
    playback = play(stage)
    ours.opened(playback.get_resource(SKD))
    theirs.opened(playback.get_resource("other:" + SKD[4:]))
    assert (len(ours.asked), len(theirs.asked)) == (1, 1)


def test_loader_forTheSameScheme_replacesTheEarlier(stage: Stage) -> None:
    ready(stage)
    first, second = CDM(), CDM()
    earlier = loader(stage, first)
    loader(stage, second)
    playback = play(stage)
    second.opened(playback.get_resource(SKD))
    earlier.close()
    second.opened(playback.get_resource(SKD))
    assert (len(first.asked), len(second.asked)) == (0, 2), "freeing the replaced loader does not affect the new one"


def test_loader_closed_isAskedNoMore_butFinishesWhatItBegan(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    first = loader(stage, cdm)
    stage.headend.faults.add("ckc", Fault.stall())
    playback = play(stage)
    load = playback.load_resource(SKD)
    stage.headend.wait_held()
    first.close()
    first.close()
    with pytest.raises(usher.DeclinedError):
        playback.get_resource(SKD)
    stage.headend.release()
    assert cdm.opened(load.result(10)) == (KID, KEY)


def test_loader_keptByNobody_servesOn(stage: Stage) -> None:
    import gc

    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    gc.collect()
    cdm.opened(play(stage).get_resource(SKD))


def test_loader_ofAClosedContext_isRefused(stage: Stage) -> None:
    stage.context.shutdown()
    with pytest.raises(usher.ClosedError):
        loader(stage)
    stage.context.close()
    with pytest.raises(usher.InvalidHandleError):
        loader(stage)


def test_context_withALoader_playsItemsWithoutADelegate_withoutOneDoesNot(stage: Stage) -> None:
    with pytest.raises(usher.NoDelegateError):
        play(stage)
    first = loader(stage)
    play(stage).close()
    first.close()
    with pytest.raises(usher.NoDelegateError):
        play(stage)


def test_playback_withoutADelegate_hasNeitherSessionNorLicences(stage: Stage) -> None:
    loader(stage)
    playback = play(stage)
    playback.wait_session()
    assert playback.session_state is usher.SessionState.NONE
    with pytest.raises(usher.StateError):
        playback.get_license(usher.KeySystem.CLEARKEY, b"{}")
    with pytest.raises(usher.StateError):
        playback.get_certificate()
    playback.close()
    playback.wait_closed()
    stage.settle()
    assert stage.routes() == []
    assert stage.events.types() == ["LICENSE_ERROR", "PLAYBACK_CLOSED"]


# ---- many loads, and other playbacks ---------------------------------------------------------------------------------


def test_loads_ofSeveralKeys_runSideBySide(stage: Stage) -> None:
    cdm = CDM()
    keys = {f"movie-{n}": (bytes([n]) * 16, bytes([255 - n]) * 16) for n in range(12)}
    for content, (kid, key) in keys.items():
        stage.headend.add_key(kid, key, content)
    loader(stage, cdm)
    stage.headend.faults.add("ckc", Fault.stall(), times=len(keys))
    playback = play(stage)
    loads = {content: playback.load_resource(f"skd://{content}") for content in keys}
    stage.headend.wait_held(len(keys))
    stage.headend.release()
    assert {content: cdm.opened(load.result(10)) for content, load in loads.items()} == keys


def test_keyRotation_laterKeysOfOnePlayback_areLoadedOneByOne(stage: Stage) -> None:
    contents = stage.headend.add_media(MEDIA)
    cdm = CDM()
    loader(stage, cdm)
    playback = play(stage)
    playlist = contents[0].files["rotating"].read_bytes()
    urls = [way.uri for way in usher.read_hls_keys(playlist)]
    assert len(urls) == 2
    got = [cdm.opened(playback.get_resource(url or "")) for url in urls]
    assert got == [
        (contents[0].keys[0].kid, contents[0].keys[0].key),
        (contents[0].keys[2].kid, contents[0].keys[2].key),
    ]


def test_zap_whileAKeyLoads_theNewItemLoadsItsOwn(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    stage.headend.faults.add("ckc", Fault.stall())
    first = play(stage)
    load = first.load_resource(SKD)
    stage.headend.wait_held()
    second = play(stage)
    assert isinstance(load.exception(10), usher.ClosedError)
    assert cdm.opened(second.get_resource(SKD)) == (KID, KEY)
    with pytest.raises(usher.ClosedError):
        first.get_resource(SKD)


def test_session_ofADelegate_andKeysByALoader_gotogether(stage: Stage) -> None:
    """A session manager limits streams, and a separate server has the keys. The session does not end when the player
    has its keys; it ends when the playback closes."""
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    playback = stage.play()
    playback.wait_session()
    cdm.opened(playback.get_resource(SKD))
    stage.advance(60_000)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "ckc", "heartbeat", "teardown"]


def test_load_beforeTheSessionIsSetUp_doesNotWaitForIt(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    stage.headend.faults.add("setup", Fault.stall())
    playback = stage.play()
    stage.headend.wait_held()
    assert cdm.opened(playback.get_resource(SKD)) == (KID, KEY)
    stage.headend.release()
    stage.settle()


def test_load_ofAClosedPlayback_isRefused_andNothingIsAsked(stage: Stage) -> None:
    ready(stage)
    told = Told()
    loader(stage)
    playback = play(stage)
    playback.close()
    stage.settle()
    with pytest.raises(usher.ClosedError):
        playback.get_resource(SKD)
    with pytest.raises(usher.ClosedError):
        playback.load_resource(SKD, callback=told)
    playback.free()
    with pytest.raises(usher.InvalidHandleError):
        playback.get_resource(SKD)
    assert (told.futures, stage.routes()) == ([], [])


def test_close_whileAKeyLoads_endsTheLoadBeforeItTellsTheEnd(stage: Stage) -> None:
    """After PLAYBACK_CLOSED no callback reports anything about this playback (docs/threading.md: Callbacks)."""
    ready(stage)
    order: list[str] = []
    loader(stage)
    stage.context.add_observer(lambda event: order.append(event.type.name))
    stage.headend.faults.add("ckc", Fault.stall())
    playback = play(stage)
    playback.load_resource(SKD, callback=lambda load: order.append(type(load.exception()).__name__))
    stage.headend.wait_held()
    playback.close()
    stage.settle()
    assert order == ["ClosedError", "PLAYBACK_CLOSED"]


# ---- time-outs -------------------------------------------------------------------------------------------------------


def test_load_withoutAnAnswer_endsAfterTwentySeconds(stage_factory: StageFactory) -> None:
    stage = stage_factory(http_timeout_ms=60_000)
    ready(stage)
    loader(stage)
    stage.headend.faults.add("ckc", Fault.stall())
    load = play(stage).load_resource(SKD)
    stage.headend.wait_held()
    stage.advance(19_999)
    assert not load.done()
    stage.advance(1)
    error = load.exception(10)
    assert isinstance(error, usher.UsherTimeoutError)
    assert (error.origin, error.operation) == (usher.Origin.LOCAL, usher.Operation.LICENSE)


def test_load_withoutABound_endsWithTheStep(stage: Stage) -> None:
    ready(stage)
    loader(stage)
    stage.headend.faults.add("ckc", Fault.stall())
    load = play(stage).load_resource(SKD, timeout_ms=usher.OFF)
    stage.headend.wait_held()
    stage.advance(9_999)
    assert not load.done()
    stage.advance(1)
    assert isinstance(load.exception(10), usher.UsherError)
    assert stage.context.pending().next_timer_ms is None


def test_spcCallback_thatDoesNotAnswer_endsAtItsDeadline(stage: Stage) -> None:
    ready(stage)
    loader(stage, lambda request: usher.LATER, spc_timeout_ms=700)
    load = play(stage).load_resource(SKD)
    stage.settle()
    stage.advance(699)
    assert not load.done()
    stage.advance(1)
    error = load.exception(10)
    assert isinstance(error, usher.UsherTimeoutError)
    assert stage.routes() == []


def test_loadsOfManyPlaybacks_leaveNothingBehind(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    for _ in range(50):
        playback = play(stage)
        playback.get_resource(SKD)
        playback.load_resource(SKD).cancel()
        playback.close()
    stage.settle()
    pending = stage.context.pending()
    assert (pending.transfers, pending.queued, pending.next_timer_ms) == (0, 0, None)


# ---- callbacks and pumped contexts -----------------------------------------------------------------------------------


def test_getResource_insideACallback_wouldDeadlock(stage: Stage) -> None:
    ready(stage)
    errors: list[BaseException] = []
    asked = threading.Event()

    def spc(request: usher.SPCRequest) -> None:
        try:
            assert request.playback is not None
            request.playback.get_resource(SKD)
        except usher.UsherError as error:
            errors.append(error)
        asked.set()

    loader(stage, spc)
    load = play(stage).load_resource(SKD)
    assert isinstance(load.exception(10), usher.CallbackError)
    assert [type(error) for error in errors] == [usher.WouldDeadlockError]


def test_loadResource_insideAnObserver_works(stage: Stage) -> None:
    ready(stage)
    cdm, loads = CDM(), list[usher.LoadingRequest]()
    loader(stage, cdm)

    def observer(event: usher.Event) -> None:
        if event.type is E.SESSION_STARTED and event.playback is not None:
            loads.append(event.playback.load_resource(SKD))

    stage.context.add_observer(observer)
    stage.play()
    stage.settle()
    assert cdm.opened(loads[0].result(10)) == (KID, KEY)


def test_pumped_everythingRunsInPump(stage_factory: StageFactory) -> None:
    stage = stage_factory(callbacks="pumped")
    ready(stage)
    cdm, threads = CDM(), set[int]()

    def spc(request: usher.SPCRequest) -> bytes:
        threads.add(threading.get_ident())
        return cdm.make(request)

    loader(stage, spc)
    playback = play(stage)
    told: list[int] = []
    load = playback.load_resource(SKD, callback=lambda future: told.append(threading.get_ident()))
    stage.settle()
    assert cdm.opened(load.result(0)) == (KID, KEY)
    assert (threads, told) == ({threading.get_ident()}, [threading.get_ident()])
    with pytest.raises(usher.WouldDeadlockError):
        playback.get_resource(SKD)


def test_pumped_cancelInsideACallback_returns(stage_factory: StageFactory) -> None:
    stage = stage_factory(callbacks="pumped")
    ready(stage)
    cdm, loads = CDM(), list[usher.LoadingRequest]()

    def spc(request: usher.SPCRequest) -> bytes:
        loads[0].cancel()
        return cdm.make(request)

    loader(stage, spc)
    loads.append(play(stage).load_resource(SKD))
    stage.settle()
    assert loads[0].cancelled()
    assert stage.routes() == []


def test_tag_ofThePlayback_comesWithTheQuestion(stage: Stage) -> None:
    ready(stage)
    cdm, tag = CDM(), object()
    loader(stage, cdm)
    playback = play(stage, tag=tag)
    playback.get_resource(SKD)
    assert cdm.asked[0].tag is tag
    assert cdm.asked[0].playback is playback
    stage.settle()
    assert stage.events.only(E.LICENSE).tag is tag


def test_url_ofAnyBytes_comesBackAsItWas(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    url = b"skd://caf\xc3\xa9-\xff"
    failed(play(stage), url)
    assert cdm.asked[0].url.encode("utf-8", "surrogateescape") == url
    assert cdm.asked[0].content_id == url[6:]


def test_derived_ofAnotherSchemeThanSkd_works(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, scheme="keys", content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON, allowed_hosts=[host(stage)])
    assert cdm.opened(play(stage).get_resource(f"keys{skd(stage.headend.fps_url)[3:]}?;{CONTENT}")) == (KID, KEY)
