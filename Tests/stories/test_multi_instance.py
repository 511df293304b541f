"""The host plays several streams at the same time: each playback has a separate session, and gets the token for its
content from the delegate's map."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest

import usher
from stage import CHALLENGE, HEADER, KEY, KID, Stage, StageFactory
from usher.testing import fairplay
from usher.testing.headend import Fault

E = usher.EventType
KEY_2 = bytes.fromhex("0123456789abcdef0123456789abcdef")
KID_2 = bytes.fromhex("aa112233445566778899aabbccddeeff")
CLEARKEY, FAIRPLAY = usher.KeySystem.CLEARKEY, usher.KeySystem.FAIRPLAY


@pytest.fixture
def stage(stage_factory: StageFactory) -> Stage:
    return stage_factory(headend={"limit": 4})


def multi(stage: Stage, key_system: Any = "clearkey", **options: Any) -> usher.MultiInstanceDelegate:
    options.setdefault("license_url", stage.headend.license_url(key_system))
    options.setdefault("ssm_url", stage.headend.ssm_url)
    return usher.MultiInstanceDelegate(stage.context, jitter_permille=usher.OFF, **options)


def play(
    stage: Stage, delegate: usher.Delegate, content_id: Any = None, *, own_player: bool = False, **options: Any
) -> usher.Playback:
    player = usher.Player(stage.context) if own_player else stage.player
    playback = player.play(delegate=delegate, content_id=content_id, **options)
    stage._playbacks.append(playback)
    return playback


def accounts(stage: Stage, route: str) -> list[str]:
    return [entry.account for entry in stage.sent(route)]


# ---- two streams -----------------------------------------------------------------------------------------------------


def test_twoEncryptedStreams_atOnce_haveTheirOwnTokensAndSessions(stage: Stage) -> None:
    """For two encrypted streams the host sets two tokens (setStreamToken); each licence request carries the token of
    its stream (multi-instance page; delegates.md: Token map)."""
    delegate = multi(stage)
    tokens = {name: stage.headend.content_token(name, name) for name in ("main", "preview")}
    for name, token in tokens.items():
        delegate.tokens[name] = token
    playbacks = {name: play(stage, delegate, name, own_player=True) for name in tokens}
    stage.settle()
    for playback in playbacks.values():
        assert stage.clear_keys(playback) == {KID: KEY}
    assert accounts(stage, "setup") == accounts(stage, "license") == ["main", "preview"]
    sessions = {entry.account: entry.session for entry in stage.sent("setup")}
    assert [entry.session for entry in stage.sent("license")] == [sessions["main"], sessions["preview"]]
    stage.advance(60_000)
    assert sorted(entry.session for entry in stage.sent("heartbeat")) == sorted(sessions.values())
    playbacks["preview"].close()
    stage.advance(60_000)
    assert stage.headend.sessions.only().account == "main", "the main stream continues after the preview was closed"
    assert [entry.session for entry in stage.sent("teardown")] == [sessions["preview"]]


def test_clearStreams_inAContextWithoutDelegate_needNothing(stage: Stage) -> None:
    """The host creates two players and plays a clear stream on each, without a delegate; both play without a session,
    and the library sends no request (multi-instance page)."""
    playbacks = [usher.Player(stage.context).play(clear=True) for _ in range(2)]
    for playback in playbacks:
        playback.wait_session()
        assert playback.session_state is usher.SessionState.NONE
        with pytest.raises(usher.StateError):
            playback.get_license(usher.KeySystem.CLEARKEY, b"{}")
    with pytest.raises(usher.NoDelegateError):
        stage.player.play("token")
    for playback in playbacks:
        playback.close()
    stage.settle()
    assert stage.events.types().count("PLAYBACK_CLOSED") == 2
    assert stage.routes() == []


def test_clearStream_withASyncDelegateOnThePumpingThread_plays(stage_factory: StageFactory) -> None:
    """The host plays a clear stream with a sync delegate on the pumping thread. The stream needs no set-up, so play()
    succeeds and does not wait."""
    stage = stage_factory(callbacks="pumped")
    stage.context.pump()
    playback = stage.play(sync_setup_teardown=True, clear=True)
    stage.settle()
    assert playback.session_state is usher.SessionState.NONE
    assert stage.routes() == []


def test_delegates_areOfTheClassesOfTheSdk(stage: Stage) -> None:
    """The default and the multi-instance delegate are subclasses of the common delegate, and setStreamToken takes token
    and content id (multi-instance page)."""
    for module in (usher, usher.aio):
        assert issubclass(module.DefaultDelegate, module.CommonDelegate)
        assert issubclass(module.MultiInstanceDelegate, module.CommonDelegate)
    delegate = multi(stage)
    delegate.setStreamToken(stage.headend.content_token(), "one")
    assert "one" in delegate.tokens
    playback = play(stage, delegate, content_id="one")
    assert stage.clear_keys(playback) == {KID: KEY}


def test_clearAndEncryptedStream_atOnce_oneTokenIsEnough(stage: Stage) -> None:
    """A clear stream needs no licence, and so neither a token nor a content id (multi-instance page)."""
    delegate = multi(stage)
    delegate.tokens["main"] = stage.headend.content_token(content_id="main")
    main = play(stage, delegate, "main", own_player=True)
    marked = play(stage, delegate, own_player=True, clear=True)
    unmarked = play(stage, delegate, own_player=True)
    stage.settle()
    assert stage.clear_keys(main) == {KID: KEY}
    stage.advance(120_000)
    assert stage.routes() == ["setup", "license", "heartbeat", "heartbeat"]
    assert [playback.session_state.name for playback in (main, marked, unmarked)] == ["ACTIVE", "NONE", "PENDING"]
    for playback in (marked, unmarked):
        playback.close()
    stage.settle()
    assert not stage.sent("teardown")
    assert {event.type.name for event in stage.events.all() if event.playback is not main} == {"PLAYBACK_CLOSED"}


def test_sameContentTwice_isTwoSessions(stage: Stage) -> None:
    """A session belongs to a playback, not to a content id: two playbacks of one content have two sessions
    (protocol.md: Races)."""
    delegate = multi(stage)
    delegate.tokens["movie"] = stage.headend.content_token(content_id="movie")
    playbacks = [play(stage, delegate, "movie", own_player=True) for _ in range(2)]
    stage.settle()
    assert len({entry.session for entry in stage.sent("setup")}) == 2
    playbacks[0].close()
    stage.settle()
    assert len(stage.headend.sessions.active()) == 1
    assert stage.clear_keys(playbacks[1]) == {KID: KEY}


def test_streamOverTheLimit_isRefusedAlone(stage_factory: StageFactory) -> None:
    """If the preview would exceed the limit of streams, the head-end refuses only the preview; the main stream
    continues (multi-instance page; SSM v1 page)."""
    stage = stage_factory(headend={"limit": 1})
    delegate = multi(stage)
    for name in ("main", "preview"):
        delegate.tokens[name] = stage.headend.content_token("family", name)
    main = play(stage, delegate, "main", own_player=True, tag="main")
    stage.settle()
    preview = play(stage, delegate, "preview", own_player=True, tag="preview")
    stage.settle()
    assert stage.events.error(E.SETUP_ERROR, "preview").status is usher.Status.LIMIT
    with pytest.raises(usher.LimitError):
        stage.clear_keys(preview)
    assert stage.clear_keys(main) == {KID: KEY}
    assert not stage.events.all(E.SETUP_ERROR, tag="main")


# ---- which token -----------------------------------------------------------------------------------------------------


def test_playback_withATokenOfItsOwn_doesNotLookInTheMap(stage: Stage) -> None:
    """If the host gives a token to play(), the library uses it for this playback, even if the map has another token for
    the content."""
    delegate = multi(stage)
    delegate.tokens["movie"] = stage.headend.content_token("of the map", "movie")
    token = stage.headend.content_token("its own", "movie")
    playback = stage.player.play(token, delegate=delegate, content_id="movie")
    stage.settle()
    stage.clear_keys(playback)
    assert accounts(stage, "setup") == accounts(stage, "license") == ["its own"]


def test_playback_thatNamesNoContent_beginsWithItsFirstLicence(stage: Stage) -> None:
    """A playback without a content id sends nothing before its first licence request. The content id in the asset ID of
    this request selects the token (multi-instance page)."""
    delegate = multi(stage)
    delegate.tokens["movie"] = stage.headend.content_token(content_id="movie")
    playback = play(stage, delegate)
    stage.settle()
    assert stage.routes() == []
    asset = fairplay.asset_id("movie", KID, bytes(16))
    assert stage.clear_keys(playback, asset_id=asset) == {KID: KEY}
    assert stage.routes() == ["setup", "license"]


JSON = {
    "ContentId": "movie?>~",
    "KeyId": "00112233-4455-6677-8899-aabbccddeeff",
    "IV": base64.b64encode(bytes(16)).decode(),
}


def in_base64(value: Any, encode: Callable[[bytes], bytes] = base64.b64encode) -> str:
    return encode(value if isinstance(value, bytes) else json.dumps(value).encode()).decode()


ASSETS = {
    "standard": in_base64(JSON),
    "unpadded": in_base64(JSON).rstrip("="),
    "url-safe": in_base64(JSON, base64.urlsafe_b64encode),
    "url-safe, unpadded": in_base64(JSON, base64.urlsafe_b64encode).rstrip("="),
    "skd://": "skd://" + in_base64(JSON),
    "SKD://, trailing slash": "SKD://" + in_base64(JSON) + "/",
    "skd: alone": "skd:" + in_base64(JSON),
    "with a query": "skd://" + in_base64(JSON) + "?x=1#y",
    "percent-encoded": "skd://" + urllib.parse.quote(in_base64(JSON), safe=""),
    "further members": in_base64({**JSON, "Extra": [1, {"a": None}], "contentId": "another"}),
    "member in another case": in_base64({"contentid": JSON["ContentId"]}),
    "another order": in_base64(dict(reversed(JSON.items()))),
    "escaped": in_base64(json.dumps(JSON).replace("movie", "\\u006dovie").encode()),
    "spaced": in_base64(json.dumps(JSON, indent=4).encode()),
    "the content id itself": "movie?>~",
    "content id in a URL": "skd://movie%3F%3E~",
}


@pytest.mark.parametrize("name", ASSETS)
def test_assetID_ofEveryForm_findsTheToken(stage: Stage, name: str) -> None:
    """An asset ID is base64 (any variant) of JSON with "ContentId"; any other text is the content id itself
    (multi-instance page; delegates.md: Token map)."""
    delegate = multi(stage)
    delegate.tokens["movie?>~"] = stage.headend.content_token(content_id="movie?>~")
    if name == "the content id itself":
        delegate.tokens["movie"] = delegate.tokens["movie?>~"]  # the library removes the query of the asset ID
    playback = play(stage, delegate)
    assert stage.clear_keys(playback, asset_id=ASSETS[name]) == {KID: KEY}
    assert stage.routes() == ["setup", "license"]


STRANGE = {
    "not base64": b"what is this!",
    "base64 of no JSON": base64.b64encode(b"{not json"),
    "base64 of a list": base64.b64encode(b'["ContentId", "movie"]'),
    "base64 of a text": base64.b64encode(b'"movie"'),
    "JSON without ContentId": base64.b64encode(b'{"KeyId": "x"}'),
    "ContentId of another type": base64.b64encode(b'{"ContentId": 7}'),
    "ContentId null": base64.b64encode(b'{"ContentId": null}'),
    "empty ContentId": base64.b64encode(b'{"ContentId": ""}'),
    "not UTF-8": b"\xff\xfe\xfd",
    "base64 of bytes that are no UTF-8": base64.b64encode(b'{"ContentId": "\xff"}'),
    "64 kB": b"x" * 65_536,
    "64 kB of braces": base64.b64encode(b"[" * 48_000),
    "a NUL": b"a\0b",
}


@pytest.mark.parametrize("name", STRANGE)
def test_assetID_thatNamesNothingKnown_hasNoToken(stage: Stage, name: str) -> None:
    """If the map has no token for the content in the asset ID, the licence request fails with "content token
    unavailable" (multi-instance page; delegates.md: Token map)."""
    delegate = multi(stage)
    delegate.tokens["movie"] = stage.headend.content_token(content_id="movie")
    playback = play(stage, delegate)
    with pytest.raises(usher.NoTokenError) as caught:
        stage.clear_keys(playback, asset_id=STRANGE[name])
    assert caught.value.legacy_codes.react_native == 5022
    assert stage.routes() == []


@pytest.mark.parametrize("name", [name for name in STRANGE if name != "a NUL"])
def test_assetID_thatIsNoJson_isItsOwnContentId(stage: Stage, name: str) -> None:
    """If the asset ID does not decode to JSON with a content id, the text of the asset ID is the content id
    (delegates.md: Token map)."""
    asset = STRANGE[name]
    delegate = multi(stage)
    delegate.tokens[asset] = stage.headend.content_token()
    if name == "base64 of bytes that are no UTF-8":
        delegate.tokens[b"\xff"] = stage.headend.content_token()
    assert stage.clear_keys(play(stage, delegate), asset_id=asset) == {KID: KEY}


def test_assetID_ofAMegabyte_isRefused(stage: Stage) -> None:
    """The library refuses an asset ID or a content id of more than 64 kB, and sends no request."""
    delegate = multi(stage)
    playback = play(stage, delegate)
    for size in (65_537, 2**20):
        with pytest.raises(usher.InvalidArgumentError):
            stage.clear_keys(playback, asset_id=b"x" * size)
    with pytest.raises(usher.InvalidArgumentError):
        stage.player.play(delegate=delegate, content_id=b"x" * 65_537)
    assert stage.routes() == []


def test_contentIds_thatUnicodeCallsEqual_areTwo(stage: Stage) -> None:
    """The library compares content ids as bytes: a composed and a decomposed Unicode letter make two different ids
    (delegates.md: Token map)."""
    delegate = multi(stage)
    for account, content in (("composed", "\u00e9"), ("decomposed", "e\u0301")):
        delegate.tokens[content] = stage.headend.content_token(account, content)
    for content in ("\u00e9", "e\u0301"):
        stage.clear_keys(play(stage, delegate, own_player=True), asset_id=in_base64({"ContentId": content}))
    assert accounts(stage, "setup") == ["composed", "decomposed"]


def test_keysOfAnotherContent_areAskedForWithItsToken(stage: Stage) -> None:
    """One playback gets licences for two content ids (e.g. an item and an advertisement) in one session, each with its
    own token (multi-instance page)."""
    stage.headend.add_key(KID, KEY, "movie")
    stage.headend.add_key(KID_2, KEY_2, "spot")
    delegate = multi(stage, "fairplay")
    delegate.tokens["movie"] = stage.headend.content_token(content_id="movie", kids=[KID])
    delegate.tokens["spot"] = stage.headend.content_token(content_id="spot", kids=[KID_2])
    playback = play(stage, delegate, "movie")
    stage.settle()
    for name, kid, key in (("movie", KID, KEY), ("spot", KID_2, KEY_2)):
        spc = fairplay.make_spc(fairplay.identifier(name, kid, bytes(16)))
        license = playback.get_license(FAIRPLAY, spc, asset_id=fairplay.asset_id(name, kid, bytes(16)))
        assert fairplay.open_ckc(license.data, spc) == (kid, key)
    assert stage.routes() == ["setup", "license", "license"]
    assert len({entry.session for entry in stage.headend.journal}) == 1


def test_keysOfAnotherContent_whileTheItemsTokenIsAwaited_waitForItsSession(stage: Stage) -> None:
    """If the first licence request is for an advertisement, the library still waits for the item's token and sets up
    the session with that token (multi-instance page)."""
    delegate = multi(stage)
    token = {name: stage.headend.content_token("viewer", name) for name in ("movie", "spot")}
    delegate.tokens["spot"] = token["spot"]
    playback = play(stage, delegate, "movie")
    spot = playback.request_license(CLEARKEY, CHALLENGE, asset_id=in_base64({"ContentId": "spot"}))
    stage.advance(4_000)
    assert stage.routes() == []
    delegate.tokens["movie"] = token["movie"]
    assert spot.result(10).clear_keys() == {KID: KEY}
    assert stage.clear_keys(playback) == {KID: KEY}
    assert stage.routes() == ["setup", "license", "license"]
    assert [entry.header(HEADER).partition(",")[0] for entry in stage.headend.journal] == [
        token["movie"],
        token["spot"],
        token["movie"],
    ]


# ---- a token that a server refuses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False], ids=["content named", "content of its first licence"])
@pytest.mark.parametrize("status", [401, 403])
def test_deniedToken_ofTheItem_isReplacedByTheCallback_onceForAll(stage: Stage, named: bool, status: int) -> None:
    """The server denies three licence requests for the same content. In one case the playback names the content, and so
    do two of the requests; the third request names none, so the content of the playback counts. In the other case the
    playback names none, and all three requests name the content. In both cases the library asks the token callback only
    once, and sends each request once more (delegates.md: Content tokens that come late, or go stale)."""
    asked: list[usher.TokenRequest] = []
    delegate = multi(stage, token_callback=lambda request: asked.append(request) or usher.LATER)  # type: ignore[func-returns-value]
    delegate.tokens["movie"] = stage.headend.content_token("viewer", "movie")
    playback = play(stage, delegate, "movie" if named else None)
    stage.settle()
    stage.headend.faults.add("license", Fault.stall("before") | Fault.status(status), times=3)
    names = [{"asset_id": in_base64({"ContentId": "movie"})}] * (2 if named else 3) + [{}] * named
    futures = [playback.request_license(CLEARKEY, CHALLENGE, **name) for name in names]
    stage.settle()
    stage.headend.release()
    stage.settle()
    assert len(asked) == 1
    fresh = stage.headend.content_token("viewer", "movie", serial="fresh")
    asked[0].answer(fresh)
    assert [future.result(10).clear_keys() for future in futures] == [{KID: KEY}] * 3
    assert stage.routes() == ["setup"] + ["license"] * 6
    assert [entry.header(HEADER).partition(",")[0] for entry in stage.sent("license")[3:]] == [fresh] * 3
    assert len(asked) == 1


@pytest.mark.parametrize("named", [True, False], ids=["content named", "content of its first licence"])
def test_deniedToken_atSetup_isReplacedForItsLicencesToo(stage: Stage, named: bool) -> None:
    """After a denied set-up, the library uses the callback's token instead of the token in the map. If the host later
    sets another token in the map, the library uses that token."""
    asked: list[str] = []

    def token(request: usher.TokenRequest) -> str:
        asked.append(stage.headend.content_token("viewer", "movie", serial="asked"))
        return asked[-1]

    delegate = multi(stage, token_callback=token, resetup_on_extra_license=usher.Resetup.NEVER)
    delegate.tokens["movie"] = stage.headend.content_token("viewer", "movie")
    stage.headend.revoke_tokens()
    stage.headend.advance(1_000)
    stage.headend.faults.add("setup", Fault.delay(1_000, "before"))
    playback = play(stage, delegate, "movie" if named else None)
    name = {"asset_id": in_base64({"ContentId": "movie"})}
    early = playback.request_license(CLEARKEY, CHALLENGE, **name)
    stage.advance(1_000)
    assert early.result(10).clear_keys() == {KID: KEY}
    stage.clear_keys(playback, **name)
    assert len(asked) == 1
    delegate.tokens["movie"] = stage.headend.content_token("viewer", "movie", serial="set")
    stage.clear_keys(playback, **name)
    assert [(entry.route, entry.status) for entry in stage.headend.journal] == [
        ("setup", 401),
        ("setup", 200),
        *[("license", 200)] * 3,
    ]
    sent = [(entry.header(HEADER) or "").partition(",")[0] for entry in stage.sent("license")]
    assert sent == [asked[0], asked[0], delegate.tokens["movie"]]


def test_deniedToken_ofTheItem_deniedAgain_neverLoops(stage: Stage) -> None:
    """If the server denies the new token too, the request fails, and the library does not send it again
    (delegates.md: Content tokens that come late, or go stale)."""
    asked: list[str] = []
    delegate = multi(
        stage, token_callback=lambda request: asked.append("token") or stage.headend.content_token(content_id="movie")
    )
    delegate.tokens["movie"] = stage.headend.content_token(content_id="movie")
    playback = play(stage, delegate, "movie")
    stage.headend.faults.add("license", Fault.error(4000, status=403, message="no"), always=True)
    with pytest.raises(usher.RefusedError, match="no"):
        stage.clear_keys(playback, asset_id=in_base64({"ContentId": "movie"}))
    assert (asked, stage.routes()) == (["token"], ["setup", "license", "license"])


def test_deniedToken_ofAnotherContent_isNotReplacedByTheItems(stage: Stage) -> None:
    """The token callback gives tokens only for the item of the playback. If the server denies a token from the map for
    an advertisement, the library does not ask the callback, and the request fails."""
    asked: list[str] = []
    delegate = multi(
        stage, token_callback=lambda request: asked.append("token") or stage.headend.content_token(content_id="movie")
    )
    for name in ("movie", "spot"):
        delegate.tokens[name] = stage.headend.content_token(content_id=name)
    playback = play(stage, delegate, "movie")
    stage.headend.faults.add("license", Fault.status(401))
    with pytest.raises(usher.HTTPStatusError):
        stage.clear_keys(playback, asset_id=in_base64({"ContentId": "spot"}))
    assert (asked, stage.routes()) == ([], ["setup", "license"])


# ---- tokens that come late, change, or are removed -------------------------------------------------------------------


def test_lateToken_forAContentThatIsNamed_isWaitedFor(stage: Stage) -> None:
    """A playback whose content has no token yet waits for setStreamToken()
    (multi-instance page; delegates.md: Content tokens that come late, or go stale)."""
    delegate = multi(stage)
    playback = play(stage, delegate, "movie")
    license = stage.call(stage.clear_keys, playback)
    stage.advance(4_000)
    assert stage.routes() == []
    delegate.tokens["other"] = stage.headend.content_token("wrong")
    delegate.tokens["movie"] = stage.headend.content_token("right", "movie")
    assert license.result(10) == {KID: KEY}
    assert accounts(stage, "setup") == ["right"]


def test_lateToken_thatNeverComes_failsAtItsTime(stage: Stage) -> None:
    """Without a token after 5 s, set-up and the waiting licences fail with "content token unavailable"
    (delegates.md: Content tokens that come late, or go stale)."""
    delegate = multi(stage)
    playback = play(stage, delegate, "movie")
    future = playback.request_license(CLEARKEY, CHALLENGE)
    stage.advance(4_999)
    assert not future.done()
    stage.advance(1)
    assert type(future.exception(10)) is usher.NoTokenError
    assert stage.events.error(E.SETUP_ERROR).legacy_codes.react_native == 5022
    delegate.tokens["movie"] = stage.headend.content_token(content_id="movie")
    stage.settle()
    assert stage.routes() == [], "a token that comes too late has no effect on this playback"


def test_lateToken_forTwoThatWait_serveBoth(stage: Stage) -> None:
    """After one setStreamToken(), all waiting playbacks of this content use the token; each sets up a separate session
    (protocol.md: Races)."""
    delegate = multi(stage)
    for _ in range(2):
        play(stage, delegate, "movie", own_player=True)
    stage.settle()
    delegate.tokens["movie"] = stage.headend.content_token(content_id="movie")
    stage.settle()
    assert stage.routes() == ["setup", "setup"]


def test_replacedToken_isUsedForFurtherLicences(stage: Stage) -> None:
    """After another setStreamToken(), further licence requests carry the new token, and the session continues
    (multi-instance page)."""
    delegate = multi(stage)
    delegate.tokens["movie"] = stage.headend.content_token("alice", "movie")
    playback = play(stage, delegate, "movie")
    stage.settle()
    stage.clear_keys(playback)
    newer = stage.headend.content_token("alice", "movie", jti="second")
    delegate.tokens["movie"] = newer
    stage.clear_keys(playback)
    assert stage.routes() == ["setup", "license", "license"]
    assert stage.sent("license")[1].header(HEADER).split(",")[0] == newer


def test_removedToken_isKeptByThePlaybackThatHoldsIt(stage: Stage) -> None:
    """After the host has removed a token from the map, a running playback continues, and a new playback gets no token
    (multi-instance page)."""
    delegate = multi(stage)
    token = delegate.tokens["movie"] = stage.headend.content_token(content_id="movie")
    playback = play(stage, delegate, "movie")
    stage.settle()
    delegate.tokens.clear()
    assert len(delegate.tokens) == 0
    assert stage.clear_keys(playback) == {KID: KEY}
    assert stage.clear_keys(playback, asset_id="movie") == {KID: KEY}
    assert {entry.header(HEADER).split(",")[0] for entry in stage.sent("license")} == {token}
    stage.advance(60_000)
    second = play(stage, delegate, "movie", own_player=True)
    stage.advance(5_000)
    with pytest.raises(usher.NoTokenError):
        stage.clear_keys(second)
    assert stage.routes() == ["setup", "license", "license", "heartbeat"]


def test_tokenCallback_isAskedWhereTheMapHasNone(stage: Stage) -> None:
    """The map has no token for a stream, and the delegate has a token callback. The library asks this callback for the
    token (SSM v1 page; multi-instance page)."""
    asked: list[Any] = []

    def token(request: usher.TokenRequest) -> str:
        asked.append(request.tag)
        return stage.headend.content_token("callback", "movie")

    delegate = multi(stage, token_callback=token)
    delegate.tokens["known"] = stage.headend.content_token("map", "known")
    for name in ("known", "movie"):
        play(stage, delegate, name, own_player=True, tag=name)
    stage.settle()
    assert (asked, sorted(accounts(stage, "setup"))) == (["movie"], ["callback", "map"])


def test_zap_toAnotherStream_tearsDownTheFirst(stage: Stage) -> None:
    """When the host plays the next stream on a player, the library ends the previous session, and uses the token of the
    next stream (multi-instance page; protocol.md: Races)."""
    delegate = multi(stage)
    for name in ("one", "two"):
        delegate.tokens[name] = stage.headend.content_token(name, name)
    play(stage, delegate, "one")
    stage.settle()
    play(stage, delegate, "two")
    stage.settle()
    assert stage.routes() == ["setup", "teardown", "setup"]
    assert accounts(stage, "setup") == ["one", "two"]


def test_steps_ofAMultiInstanceDelegate_areToldTheAssetID(stage: Stage) -> None:
    """A subclass may override generateHTTPHeaders(assetID) to make headers for each stream (multi-instance page)."""
    asked: list[Any] = []

    class Own(usher.MultiInstanceDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> dict[str, str]:
            asked.append((call.asset_id, call.tag))
            return call.builtin()

    delegate = Own(stage.context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url)
    delegate.tokens["movie"] = stage.headend.content_token(content_id="movie")
    playback = play(stage, delegate, "movie", tag="mine")
    stage.settle()
    assert stage.clear_keys(playback, asset_id="movie") == {KID: KEY}
    assert stage.clear_keys(playback) == {KID: KEY}
    assert asked == [(b"movie", "mine"), (None, "mine")]
