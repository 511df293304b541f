"""Tests the loader's callbacks `server` and `token_url`, with which the host decides to which server the library sends
the SPC."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.fps import CDM, CONTENT, SKD, failed, host, loader, play, ready, skd
from usher import EventType
from usher.testing.headend import Fault
from usher.testing.headend.knobs import Fps, Sees


class Kept:
    """A `server` callback that stores its requests and does not answer them."""

    def __init__(self) -> None:
        self.requests: list[usher.ServerRequest] = []

    def __call__(self, request: usher.ServerRequest) -> Any:
        self.requests.append(request)
        return usher.LATER


def plays(stage: Stage, cdm: CDM, url: str = SKD) -> bool:
    """Loads the key for the URL. Returns whether it is the key of the content."""
    return cdm.opened(play(stage).get_resource(url)) == (KID, KEY)


# ---- the server callback ---------------------------------------------------------------------------------------------


def test_server_ofTheHost_getsTheSPC_withTheHostsHeaders(stage_factory: StageFactory) -> None:
    """The host answers with its own key server and a header. The library sends the SPC to this server, although
    allowed_hosts has no entry for it."""
    stage = stage_factory(headend={"fps": Fps(authorization="Bearer 1")})
    ready(stage)
    cdm = CDM()
    asked: list[usher.ServerRequest] = []

    def server(request: usher.ServerRequest) -> Any:
        asked.append(request)
        return stage.headend.fps_url, {"Authorization": "Bearer 1"}

    loader(stage, cdm, server=server, license_url="https://unused.example.com/", extra_headers="X-Device: tv")
    assert plays(stage, cdm)
    (sent,) = stage.sent("ckc")
    assert (sent.header("authorization"), sent.header("x-device")) == ("Bearer 1", "tv")
    (request,) = asked
    assert (request.url, request.entitlement_id) == (SKD, CONTENT.encode())
    assert json.loads(request.content_id)["ContentId"] == CONTENT
    assert (request.entitlement_url, request.token_kind) == (None, usher.TokenKind.TIME_BASED)


@pytest.mark.parametrize("answer", ["later", "future"])
def test_server_answeredLater_getsTheSPC(stage: Stage, answer: str) -> None:
    ready(stage)
    cdm = CDM()
    kept, promise = Kept(), Future[str]()
    loader(stage, cdm, server=kept if answer == "later" else lambda request: promise)
    load = play(stage).load_resource(SKD)
    stage.settle()
    assert stage.routes() == []
    if answer == "later":
        kept.requests[0].answer(stage.headend.fps_url)
        with pytest.raises(usher.InvalidCompletionError):
            kept.requests[0].answer(stage.headend.fps_url)
    else:
        promise.set_result(stage.headend.fps_url)
    assert cdm.opened(load.result(10)) == (KID, KEY)


def test_server_choosesTheBuiltIn_theLoadersOwnServerGetsTheSPC(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, server=lambda request: request.answer_builtin(), license_url=stage.headend.fps_url)
    assert plays(stage, cdm)
    assert stage.routes() == ["ckc"]


def test_server_choosesAnEntitlementServer_theLibraryAsksItForTheTokenURL(stage: Stage) -> None:
    """The options of the loader name a key server. For this URL the host's callback names an entitlement server
    instead."""
    ready(stage)
    cdm = CDM()
    loader(
        stage,
        cdm,
        server=lambda request: request.ask_entitlement(stage.headend.entitlement_url, b"movie-1"),
        allowed_hosts=[host(stage)],
    )
    assert plays(stage, cdm)
    assert stage.routes() == ["entitlement", "rights"]
    assert json.loads(stage.sent("entitlement")[0].body)["contentID"] == "movie-1"


def test_server_choosesTheEntitlementServerOfTheOptions_itIsAsked(stage: Stage) -> None:
    ready(stage)
    cdm, asked = CDM(), []

    def server(request: usher.ServerRequest) -> None:
        asked.append(request.entitlement_url)
        request.ask_entitlement()

    loader(stage, cdm, server=server, entitlement_url=stage.headend.entitlement_url)
    assert plays(stage, cdm)
    assert asked == [stage.headend.entitlement_url]


@pytest.mark.callback_errors
@pytest.mark.parametrize(
    "answer",
    [lambda request: None, lambda request: request.fail(), lambda request: 1 // 0],
    ids=["none", "fail", "raises"],
)
def test_server_hasNoServer_theLoadFailsWithoutARequest(stage: Stage, answer: Callable[[Any], Any]) -> None:
    ready(stage)
    loader(stage, server=answer)
    error = failed(play(stage))
    assert isinstance(error, usher.CallbackError)
    assert error.operation is usher.Operation.LICENSE
    assert stage.routes() == []
    stage.settle()
    assert stage.events.types() == ["LICENSE_ERROR"]


def test_server_answersTooLate_theLoadTimesOut_andTheAnswerIsRefused(stage: Stage) -> None:
    ready(stage)
    kept = Kept()
    loader(stage, server=kept)
    load = play(stage).load_resource(SKD)
    stage.settle()
    stage.advance(9_999)
    assert not load.done()
    stage.advance(1)
    assert isinstance(load.exception(10), usher.UsherTimeoutError)
    with pytest.raises(usher.InvalidCompletionError):
        kept.requests[0].answer(stage.headend.fps_url)
    assert stage.routes() == []


def test_server_questionOpenAtClose_theAnswerIsRefused(stage: Stage) -> None:
    ready(stage)
    kept = Kept()
    loader(stage, server=kept)
    playback = play(stage)
    load = playback.load_resource(SKD)
    stage.settle()
    playback.close()
    assert isinstance(load.exception(10), usher.ClosedError)
    with pytest.raises(usher.InvalidCompletionError):
        kept.requests[0].answer(stage.headend.fps_url)


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: request.answer("no URL"),
        lambda request: request.answer("http://keys.example.com/"),
        lambda request: request.answer(("https://keys.example.com/", {"Host": "other"})),
        lambda request: request.answer(("https://keys.example.com/", {"a": "b\r"})),
        lambda request: request.ask_entitlement("no URL"),
        lambda request: request.ask_entitlement(token_kind=9),
        lambda request: request.ask_entitlement(content_id=b""),
    ],
    ids=["text", "plain http", "reserved header", "line break", "entitlement text", "token kind", "empty content"],
)
def test_server_answerIsMalformed_theQuestionStaysOpen(stage: Stage, answer: Callable[[Any], Any]) -> None:
    ready(stage)
    cdm, kept = CDM(), Kept()
    loader(stage, cdm, server=kept)
    load = play(stage).load_resource(SKD)
    stage.settle()
    with pytest.raises(usher.InvalidArgumentError):
        answer(kept.requests[0])
    kept.requests[0].answer(stage.headend.fps_url)
    assert cdm.opened(load.result(10)) == (KID, KEY)


def test_serverQuestion_isAnsweredOnlyByItsOwnFunctions(stage: Stage) -> None:
    """The library refuses an SPC, bytes of a hook and a token as the answer to the question for a server, and it
    refuses a server as the answer to the question for an SPC."""
    ready(stage)
    servers, spcs = Kept(), Kept()
    loader(stage, spcs, server=servers)
    play(stage).load_resource(SKD)
    stage.settle()
    lib, number = usher._c.ffi.lib, servers.requests[0]._completion
    for call in (
        lambda: lib.usher_complete_payload(number, usher._c.ffi.c_bytes(b"x"), 1),
        lambda: lib.usher_complete_hook(number, usher._c.ffi.c_bytes(b"x"), 1),
        lambda: lib.usher_complete_headers(number, b""),
        lambda: lib.usher_complete_token(number, b"x"),
    ):
        with pytest.raises(usher.InvalidCompletionError):
            call()
    servers.requests[0].answer(stage.headend.fps_url)
    stage.settle()
    number = spcs.requests[0]._completion
    for call in (
        lambda: lib.usher_complete_server(number, b"https://h/", None),
        lambda: lib.usher_complete_entitlement(number, None),
        lambda: lib.usher_complete_builtin(number),
    ):
        with pytest.raises(usher.InvalidCompletionError):
            call()


# ---- the token URL callback ------------------------------------------------------------------------------------------


def test_tokenURL_ofTheHost_getsTheSPC_andTheEntitlementServerIsNotAsked(stage: Stage) -> None:
    ready(stage)
    cdm, asked = CDM(), []

    def token_url(request: usher.ServerRequest) -> str:
        asked.append((request.entitlement_url, request.entitlement_id))
        return stage.headend.rights_token_url(CONTENT)

    loader(
        stage,
        cdm,
        token_url=token_url,
        route=usher.Route.ENTITLEMENT,
        entitlement_url=stage.headend.entitlement_url,
    )
    assert plays(stage, cdm)
    assert stage.routes() == ["rights"]
    assert asked == [(stage.headend.entitlement_url, CONTENT.encode())]


def test_tokenURL_ofTheHost_needsNoEntitlementServer(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, token_url=lambda request: stage.headend.rights_token_url(CONTENT), route=usher.Route.ENTITLEMENT)
    assert plays(stage, cdm)


def test_tokenURL_refused_isAnErrorOfTheEntitlement(stage: Stage) -> None:
    ready(stage)
    loader(stage, token_url=lambda request: None, route=usher.Route.ENTITLEMENT)
    error = failed(play(stage))
    assert isinstance(error, usher.CallbackError)
    assert error.operation is usher.Operation.ENTITLEMENT


def test_bothCallbacks_serverFirst_thenTheTokenURL_thenTheBuiltIn(stage: Stage) -> None:
    ready(stage)
    cdm, order = CDM(), []

    def server(request: usher.ServerRequest) -> None:
        order.append("server")
        request.ask_entitlement(stage.headend.entitlement_url)

    def token_url(request: usher.ServerRequest) -> None:
        order.append("token URL")
        request.answer_builtin()

    loader(stage, cdm, server=server, token_url=token_url, allowed_hosts=[host(stage)])
    assert plays(stage, cdm)
    assert order == ["server", "token URL"]
    assert stage.routes() == ["entitlement", "rights"]


def test_tokenURL_ofTheEntitlementReply_onAnUnlistedHost_isRefused(stage: Stage) -> None:
    """The host chooses the entitlement server. The URL in the reply of this server still needs an entry in
    allowed_hosts."""
    ready(stage)
    loader(stage, server=lambda request: request.ask_entitlement(stage.headend.entitlement_url), allowed_hosts=["a.b"])
    assert isinstance(failed(play(stage)), usher.NotAllowedError)
    assert stage.routes() == ["entitlement"]


def test_tokenInTheHostsURL_doesNotAppearInErrors(stage: Stage) -> None:
    ready(stage)
    url = f"{stage.headend.rights_url}?ExpressPlayToken=s3cretT0ken"
    loader(stage, server=lambda request: url)
    stage.headend.faults.add("rights", Fault.error(-2002, message="token s3cretT0ken expired", status=403))
    error = failed(play(stage))
    assert isinstance(error, usher.RefusedError)
    assert "s3cretT0ken" not in str(error)


# ---- entitlement replies in other forms ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["uri-list", "without messageID"])
def test_entitlementReply_inAnotherForm_isRead(stage_factory: StageFactory, form: str) -> None:
    stage = stage_factory(headend={"sees": Sees(message_id="missing")})
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    if form == "uri-list":
        stage.headend.faults.add(
            "entitlement",
            Fault.non_json(f"# rights\r\n{stage.headend.rights_token_url(CONTENT)}\r\n"),
        )
    assert plays(stage, cdm)
    assert stage.routes() == ["entitlement", "rights"]


# ---- URLs that name nothing, or have no slashes ----------------------------------------------------------------------


@pytest.mark.parametrize("url", ["skd:", "skd://", "skd://?x=1", "skd:?x=1", "skd:///"])
def test_url_namesNothing_theKnownServerGetsTheSPC(stage: Stage, url: str) -> None:
    """The URL names no content. The host knows the content in another way, and makes the SPC for this content."""
    ready(stage)
    cdm = CDM()

    def spc(request: usher.SPCRequest) -> bytes:
        assert (request.url, request.content_id) == (url, b"")
        request.content_id = CONTENT.encode()
        return cdm(request)

    loader(stage, spc)
    assert plays(stage, cdm, url)


@pytest.mark.parametrize("callback", ["server", "token_url"])
def test_url_namesNothing_theHostNamesServerAndContent(stage: Stage, callback: str) -> None:
    ready(stage)
    cdm = CDM()

    def spc(request: usher.SPCRequest) -> bytes:
        request.content_id = CONTENT.encode()
        return cdm(request)

    options: dict[str, Any] = {callback: lambda r: r.ask_entitlement(stage.headend.entitlement_url, CONTENT.encode())}
    loader(stage, spc, route=usher.Route.ENTITLEMENT, **options)
    assert plays(stage, cdm, "skd://")
    assert json.loads(stage.sent("entitlement")[0].body)["contentID"] == CONTENT


def test_url_namesNothing_theEntitlementServerNeedsContent(stage: Stage) -> None:
    ready(stage)
    loader(stage, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    error = failed(play(stage), "skd://")
    assert isinstance(error, usher.InvalidArgumentError)
    assert error.message == "the URL names no content"
    assert stage.routes() == []


def test_url_namesNothing_andNoServerIsKnown_isRefused(stage: Stage) -> None:
    loader(stage, allowed_hosts=[host(stage)])
    assert isinstance(failed(play(stage), "skd://"), usher.InvalidArgumentError)


def test_url_ofAnEntitlementServerWithoutSlashes_isAsked(stage: Stage) -> None:
    """The packager wrote the URL of an entitlement server as `skd:host/path?cid=…`, without slashes; the library asks
    this server."""
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, route=usher.Route.ENTITLEMENT)
    url = skd(stage.headend.entitlement_url).replace("skd://", "skd:") + f"?cid={CONTENT}"
    assert plays(stage, cdm, url)
    assert stage.routes() == ["entitlement", "rights"]


# ---- devices ---------------------------------------------------------------------------------------------------------


def bound(stage: Stage, **options: Any) -> dict[str, Any]:
    entitled = {"route": usher.Route.ENTITLEMENT, "entitlement_url": stage.headend.entitlement_url}
    return {**entitled, "device_binding": True, "customer_cookie": "household-1", **options}


def kinds(stage: Stage) -> list[int]:
    return [json.loads(sent.body)["requestType"] for sent in stage.sent("entitlement")]


def test_device_registered_isToldOnce_andKnownToTheNextRun(stage: Stage) -> None:
    ready(stage)
    cdm = CDM(device=b"this tv")
    loader(stage, cdm, **bound(stage))
    playback = play(stage)
    playback.get_resource(SKD)
    playback.get_resource(SKD)
    stage.settle()
    assert stage.events.types() == ["LICENSE", "DEVICE_REGISTERED", "LICENSE"]
    loader(stage, cdm, **bound(stage, device_registered=True))  # the next start of the program
    playback.get_resource(SKD)
    assert kinds(stage) == [2, 3, 3]
    stage.settle()
    assert stage.events.types().count("DEVICE_REGISTERED") == 1


def test_device_notRegistered_isNotTold(stage: Stage) -> None:
    ready(stage)
    loader(stage, CDM(device=b"tv"), **bound(stage))
    stage.headend.faults.add("rights", Fault.status(503))
    failed(play(stage))
    stage.settle()
    assert EventType.DEVICE_REGISTERED not in {event.type for event in stage.events.all()}


def test_device_ofTheHostsEntitlement_isRegisteredWithItsToken(stage: Stage) -> None:
    """The host gets the tokens itself. The question says which kind of token the library needs, and the licence request
    registers the device."""
    ready(stage)
    asked: list[usher.TokenKind] = []

    def token_url(request: usher.ServerRequest) -> str:
        asked.append(request.token_kind)
        return stage.headend.rights_token_url(CONTENT)

    loader(stage, CDM(device=b"tv"), token_url=token_url, **bound(stage))
    playback = play(stage)
    playback.get_resource(SKD)
    playback.get_resource(SKD)
    assert asked == [usher.TokenKind.REGISTRATION, usher.TokenKind.DEVICE_BOUND]
    stage.settle()
    assert stage.events.types() == ["LICENSE", "DEVICE_REGISTERED", "LICENSE"]


def test_device_enforcedByTheHost_isAskedForABoundToken(stage: Stage) -> None:
    """Without `device_binding`, the host itself says for each token whether the token registers the device or is bound
    to the device."""
    ready(stage)
    wanted = iter([usher.TokenKind.REGISTRATION, usher.TokenKind.DEVICE_BOUND])
    loader(
        stage,
        CDM(device=b"tv"),
        server=lambda request: request.ask_entitlement(token_kind=next(wanted)),
        entitlement_url=stage.headend.entitlement_url,
        customer_cookie="household-1",
    )
    playback = play(stage)
    playback.get_resource(SKD)
    playback.get_resource(SKD)
    assert kinds(stage) == [2, 3]
    stage.settle()
    assert stage.events.types() == ["LICENSE", "DEVICE_REGISTERED", "LICENSE"]


def test_deviceRegistered_withoutBinding_isRefused(stage: Stage) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        loader(stage, device_registered=True)
