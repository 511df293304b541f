"""Tests the default and the common delegate: licences without sessions, and each hook that a subclass can override."""

from __future__ import annotations

from typing import Any

import pytest

import usher
from stage import CHALLENGE, HEADER, KEY, KID, Stage, StageFactory
from usher.testing import fairplay
from usher.testing.headend import Fault, widevine_license

E = usher.EventType
CLEARKEY, FAIRPLAY, WIDEVINE = usher.KeySystem.CLEARKEY, usher.KeySystem.FAIRPLAY, usher.KeySystem.WIDEVINE
IDENTIFIER = fairplay.identifier("movie", KID, bytes(16))
SKD = fairplay.skd_url("movie", KID, bytes(16))


@pytest.fixture
def stage(stage_factory: StageFactory) -> Stage:
    """A stage with a head-end whose licences need no session."""
    return stage_factory(headend={"ssm_required": "never"})


def default(stage: Stage, key_system: Any = "clearkey", **options: Any) -> usher.DefaultDelegate:
    options.setdefault("license_url", stage.headend.license_url(key_system))
    return usher.DefaultDelegate(stage.context, **options)


def common(stage: Stage, key_system: Any = "clearkey", **steps: Any) -> usher.CommonDelegate:
    """Makes a common delegate that overrides the given hooks. If a value is not a function, the hook always answers
    with this value."""
    options = {
        name: steps.pop(name)
        for name in ("license_url_option", "certificate_url", "hook_timeout_ms", "token_header")
        if name in steps
    }
    url = options.pop("license_url_option", stage.headend.license_url(key_system))
    methods = {name: step if callable(step) else (lambda self, call, made=step: made) for name, step in steps.items()}
    return type("Own", (usher.CommonDelegate,), methods)(stage.context, license_url=url, **options)  # type: ignore[no-any-return]


def play(stage: Stage, delegate: usher.Delegate, token: str | None = None, **options: Any) -> usher.Playback:
    playback = stage.player.play(token, delegate=delegate, **options)
    stage._playbacks.append(playback)
    return playback


# ---- the default delegate --------------------------------------------------------------------------------------------


def test_defaultDelegate_withAHeader_sendsItWithTheLicenceRequest(stage: Stage) -> None:
    """setHTTPHeader() sets headers of licence requests; there is no session
    (multi-instance page; delegates.md: Hooks)."""
    delegate = default(stage)
    token = stage.headend.content_token()
    delegate.set_http_header(HEADER, token)
    playback = play(stage, delegate)
    assert stage.clear_keys(playback) == {KID: KEY}
    assert playback.session_state is usher.SessionState.NONE
    assert stage.routes() == ["license"]
    assert stage.sent("license")[0].header(HEADER) == token
    stage.settle()
    assert stage.events.types() == ["LICENSE"]


def test_defaultDelegate_withoutAHeader_isRefusedByTheServer(stage: Stage) -> None:
    """If the host has set no token header, the library sends the request without a token, and reports the error of the
    server (delegates.md: Hooks)."""
    playback = play(stage, default(stage))
    with pytest.raises(usher.RefusedError) as caught:
        stage.clear_keys(playback)
    assert caught.value.origin is usher.Origin.LICENSE
    assert caught.value.service_code == stage.sent("license")[0].error_code != 0


def test_defaultDelegate_forTheNextStream_takesTheNextHeader(stage: Stage) -> None:
    """A host that plays one stream after another sets the header before each stream (multi-instance page)."""
    delegate = default(stage)
    tokens = [stage.headend.content_token(account) for account in ("first", "second")]
    for token in tokens:
        delegate.set_http_header(HEADER, token)
        assert stage.clear_keys(play(stage, delegate)) == {KID: KEY}
    assert [entry.header(HEADER) for entry in stage.sent("license")] == tokens
    assert [entry.account for entry in stage.sent("license")] == ["first", "second"]


def test_defaultDelegate_headerTakenAway_isSentNoMore(stage: Stage) -> None:
    """setHTTPHeader with None removes a header; upper and lower case in the name do not matter
    (delegates.md: Hooks)."""
    delegate = default(stage)
    delegate.set_http_header("X-Device", "tv")
    delegate.set_http_header(HEADER, stage.headend.content_token())
    playback = play(stage, delegate)
    stage.clear_keys(playback)
    delegate.set_http_header("x-device", None)
    stage.clear_keys(playback)
    assert [entry.header("x-device") for entry in stage.sent("license")] == ["tv", None]


def test_defaultDelegate_playbackWithItsOwnToken_sendsThatOne(stage: Stage) -> None:
    """The host sets a token header on the delegate and gives another token to play(); the licence request carries only
    the token of play() (protocol.md: Licences)."""
    delegate = default(stage)
    delegate.set_http_header(HEADER, stage.headend.content_token("of the header"))
    token = stage.headend.content_token("of the playback")
    stage.clear_keys(play(stage, delegate, token))
    assert [entry.header(HEADER) for entry in stage.sent("license")] == [token]


def test_defaultDelegate_withAnotherTokenHeader_sendsTheTokenUnderIt(stage_factory: StageFactory) -> None:
    """A delegate option sets the name of the header that carries the token (protocol.md: Licences)."""
    stage = stage_factory(headend={"ssm_required": "never", "auth_headers": ("x-token",)})
    token = stage.headend.content_token()
    assert stage.clear_keys(play(stage, default(stage, token_header="X-Token"), token)) == {KID: KEY}
    entry = stage.sent("license")[0]
    assert (entry.header("x-token"), entry.header(HEADER)) == (token, None)


def test_defaultDelegate_withExtraHeaders_sendsThemToBothServers(stage: Stage) -> None:
    """Licence and certificate requests carry the extra headers (e.g. a tenant id); only licence requests carry the
    token (protocol.md: The session; protocol.md: Licences)."""
    stage.headend.add_key(KID, KEY, "movie")
    delegate = default(
        stage,
        "fairplay",
        certificate_url=stage.headend.certificate_url("fairplay"),
        extra_headers="nv-tenant-id: TENANT1\nX-Two: 2",
    )
    token = stage.headend.content_token(content_id="movie")
    playback = play(stage, delegate, token)
    spc = fairplay.make_spc(IDENTIFIER, playback.get_certificate())
    assert fairplay.open_ckc(playback.get_license(FAIRPLAY, spc).data, spc) == (KID, KEY)
    for entry in (stage.sent("certificate")[0], stage.sent("license")[0]):
        assert (entry.header("nv-tenant-id"), entry.header("x-two")) == ("TENANT1", "2")
    assert (stage.sent("certificate")[0].header(HEADER), stage.sent("license")[0].header(HEADER)) == (None, token)


def test_defaultDelegate_renewal_goesToTheLicenceServerWithRenewTrue(stage: Stage) -> None:
    """With a delegate without sessions, the library sends a renewal to the licence server, also for Widevine
    (protocol.md: Heartbeats or renewals; delegates.md: Hooks)."""
    playback = play(stage, default(stage, "widevine"))
    for route in ("license", "license-renewal"):
        stage.headend.faults.add(route, Fault.reply(200, body=widevine_license(b"again")))
    playback.get_license(WIDEVINE, b"first challenge")
    assert playback.get_license(WIDEVINE, b"again", type=usher.LicenseType.RENEWAL).data == widevine_license(b"again")
    assert [entry.query_value("renew") for entry in stage.headend.journal] == [None, "true"]
    assert not stage.sent("renewal-wv")


def test_defaultDelegate_zap_tearsNothingDown(stage: Stage) -> None:
    """On a zap without a session manager, the library sends no teardown, only the licence request of the next item
    (protocol.md: The session)."""
    delegate = default(stage)
    delegate.set_http_header(HEADER, stage.headend.content_token())
    for _ in range(3):
        stage.clear_keys(play(stage, delegate))
    stage.player.stop()
    stage.settle()
    assert stage.routes() == ["license"] * 3


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"license_url": ""},
        {"license_url": "ftp://127.0.0.1/"},
        {"license_url": "http://tenant.example.invalid/"},
        {"hook_timeout_ms": -1},
    ],
)
def test_defaultDelegate_withoutALicenceServer_isRefused(stage: Stage, options: dict[str, Any]) -> None:
    """The library refuses a default delegate without a licence URL (delegates.md: Which delegate)."""
    with pytest.raises(usher.InvalidArgumentError):
        usher.DefaultDelegate(stage.context, **options)
    with pytest.raises(TypeError):
        usher.DefaultDelegate(stage.context, license_uri="http://127.0.0.1/")  # type: ignore[call-arg]


def test_header_thatIsNone_isRefused(stage: Stage) -> None:
    """The library refuses a header whose name is forbidden, or whose value has several lines or is too long
    (protocol.md: Licences)."""
    delegate = default(stage)
    for name, value in [
        ("", "x"),
        ("a b", "x"),
        ("X", "a\nb"),
        ("X", "a\rb"),
        ("X", "a\0b"),
        ("X:", "y"),
        ("X", "y" * 70_000),
    ]:
        with pytest.raises(usher.InvalidArgumentError):
            delegate.set_http_header(name, value)


# ---- one hook after the other ----------------------------------------------------------------------------------------


def test_commonDelegate_withoutSteps_isTheDefaultOne(stage: Stage) -> None:
    """A common delegate without overridden hooks behaves like a default delegate, which in the SDKs is a subclass of
    the common delegate (multi-instance page; delegates.md: Hooks)."""
    delegate = usher.CommonDelegate(stage.context, license_url=stage.headend.license_url("clearkey"))
    delegate.set_http_header(HEADER, stage.headend.content_token())
    assert stage.clear_keys(play(stage, delegate)) == {KID: KEY}


def test_headersStep_answers_inPlaceOfTokenAndHeaders(stage: Stage) -> None:
    """generateHTTPHeaders(assetID) gets the asset ID and returns headers. The library sends these instead of the
    built-in headers (multi-instance page; delegates.md: Hooks)."""
    token = stage.headend.content_token("from the hook")
    asked: list[usher.HookCall[Any]] = []

    def http_headers(self: Any, call: usher.HookCall[Any]) -> dict[str, str]:
        asked.append(call)
        return {HEADER: token, "X-Extra": "1"}

    delegate = common(stage, http_headers=http_headers)
    delegate.set_http_header("X-Static", "2")
    playback = play(stage, delegate, stage.headend.content_token("unused"), tag="mine")
    playback.get_license(CLEARKEY, CHALLENGE, asset_id="the asset")
    entry = stage.sent("license")[0]
    assert (entry.account, entry.header("x-extra"), entry.header("x-static")) == ("from the hook", "1", None)
    call = asked[0]
    assert (call.hook, call.type, call.key_system) == (usher.Hook.HEADERS, usher.LicenseType.REQUEST, CLEARKEY.value)
    assert (call.asset_id, call.data, call.http_status) == (b"the asset", CHALLENGE, 0)
    assert (call.playback, call.tag, call.answered) == (playback, "mine", True)


def test_headersStep_none_doesNotSendTheRequest(stage: Stage) -> None:
    """If generateHTTPHeaders() answers nil, the library does not send the licence request (delegates.md: Hooks)."""
    playback = play(stage, common(stage, http_headers=lambda self, call: None))
    with pytest.raises(usher.DeclinedError) as caught:
        stage.clear_keys(playback)
    assert caught.value.__cause__ is None
    assert caught.value.origin is usher.Origin.LOCAL
    assert stage.routes() == []
    stage.settle()
    assert stage.events.error(E.LICENSE_ERROR).status is usher.Status.DECLINED


def test_headersStep_empty_sendsTheRequestWithoutThem(stage: Stage) -> None:
    """If generateHTTPHeaders() answers an empty map, the library sends the request without extra headers
    (delegates.md: Hooks)."""
    playback = play(stage, common(stage, http_headers={}), stage.headend.content_token())
    with pytest.raises(usher.RefusedError):
        stage.clear_keys(playback)
    (entry,) = stage.sent("license")
    assert entry.header(HEADER) is None
    assert entry.header("content-type") == "application/json"


def test_headersStep_ofTheSuperclass_makesTokenAndHeaders(stage: Stage) -> None:
    """The superclass returns the built-in headers to a hook: the token header and the headers of setHTTPHeader
    (delegates.md: Hooks)."""
    made: list[Any] = []

    class Own(usher.CommonDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> dict[str, str]:
            made.append(super().http_headers(call))
            assert not call.answered, "builtin() leaves the question open"
            return {**call.builtin(), "X-Added": "yes"}

    delegate = Own(stage.context, license_url=stage.headend.license_url("clearkey"))
    delegate.set_http_header("X-Static", "2")
    token = stage.headend.content_token()
    assert stage.clear_keys(play(stage, delegate, token)) == {KID: KEY}
    assert made == [{HEADER: token, "X-Static": "2"}]
    entry = stage.sent("license")[0]
    assert (entry.header(HEADER), entry.header("x-static"), entry.header("x-added")) == (token, "2", "yes")


def test_urlStep_answers_whereTheRequestGoes(stage: Stage) -> None:
    """getLicenseRequestUrl() returns the licence URL, so the delegate needs no option with a URL
    (delegates.md: Hooks)."""

    class Own(usher.CommonDelegate):
        def license_url(self, call: usher.HookCall[str]) -> str:
            return stage.headend.license_url("clearkey") + "?asset=7"

    playback = play(stage, Own(stage.context), stage.headend.content_token())
    assert stage.clear_keys(playback) == {KID: KEY}
    assert stage.sent("license")[0].query_value("asset") == "7"


def test_urlStep_ofTheSuperclass_hasRenewTrueForRenewals(stage: Stage) -> None:
    """getLicenseRequestUrl() of the superclass returns the licence URL, with renew=true for a renewal
    (delegates.md: Hooks)."""
    urls: list[Any] = []

    class Own(usher.CommonDelegate):
        def license_url(self, call: usher.HookCall[str]) -> str:
            urls.append((call.type, call.builtin()))
            return call.builtin()

    url = stage.headend.license_url("clearkey")
    playback = play(stage, Own(stage.context, license_url=url + "?a=b"))
    for route in ("license", "license-renewal"):
        key = {"kty": "oct", "kid": "A" * 22, "k": "A" * 22}
        stage.headend.faults.add(route, Fault.reply(200, body={"keys": [key]}))
    stage.clear_keys(playback)
    stage.clear_keys(playback, type=usher.LicenseType.RENEWAL)
    assert urls == [(usher.LicenseType.REQUEST, url + "?a=b"), (usher.LicenseType.RENEWAL, url + "?a=b&renew=true")]


def test_bodyStep_answers_whatIsSent(stage: Stage) -> None:
    """A hook may wrap the payload in the form that its licence server expects (delegates.md: Hooks)."""
    body = usher.clear_key_request([KID])

    class Own(usher.CommonDelegate):
        def license_body(self, call: usher.HookCall[bytes]) -> bytes:
            assert call.data == b"a payload of the player's"
            assert call.builtin() == call.data
            return body

    playback = play(
        stage, Own(stage.context, license_url=stage.headend.license_url("clearkey")), stage.headend.content_token()
    )
    assert playback.get_license(CLEARKEY, b"a payload of the player's").clear_keys() == {KID: KEY}
    assert stage.sent("license")[0].body == body


def test_bodyStep_ofTheSuperclass_isTheChallengeInJsonForWidevine(stage: Stage) -> None:
    """For Widevine the superclass returns the JSON form: {"challenge": base64} (protocol.md: Licences)."""
    made: list[bytes] = []

    class Own(usher.CommonDelegate):
        def license_body(self, call: usher.HookCall[bytes]) -> bytes:
            made.append(call.builtin())
            return made[-1]

    playback = play(
        stage, Own(stage.context, license_url=stage.headend.license_url("widevine")), stage.headend.content_token()
    )
    assert playback.get_license(WIDEVINE, b"challenge").data == widevine_license(b"challenge")
    assert made == [b'{"challenge":"Y2hhbGxlbmdl"}'] == [stage.sent("license")[0].body]


def test_licenceStep_answers_inPlaceOfWhatTheReplyHas(stage: Stage) -> None:
    """The licence hook (in the SDK: getCkcFromLicenseResponse()) takes the licence from a reply in a format that the
    library does not know (delegates.md: Hooks)."""
    asked: list[Any] = []

    def license_from_reply(self: Any, call: usher.HookCall[bytes]) -> bytes:
        asked.append((call.hook, call.data, call.http_status))
        return b"the licence in it"

    stage.headend.faults.add("license", Fault.reply(203, body=b"<wrapped/>"))
    playback = play(stage, common(stage, license_from_reply=license_from_reply), stage.headend.content_token())
    assert playback.get_license(CLEARKEY, CHALLENGE).data == b"the licence in it"
    assert asked == [(usher.Hook.LICENSE, b"<wrapped/>", 203)]


def test_licenceStep_ofTheSuperclass_isTheCkc(stage: Stage) -> None:
    """getCkcFromLicenseResponse() of the superclass takes CkcMessage from the reply's JSON and decodes the base64
    (protocol.md: Licences; delegates.md: Hooks)."""
    stage.headend.add_key(KID, KEY, "movie")

    class Own(usher.CommonDelegate):
        def license_from_reply(self, call: usher.HookCall[bytes]) -> bytes:
            assert b"CkcMessage" in (call.data or b"")
            return call.builtin()

    playback = play(
        stage,
        Own(stage.context, license_url=stage.headend.license_url("fairplay")),
        stage.headend.content_token(content_id="movie"),
    )
    spc = fairplay.make_spc(IDENTIFIER)
    assert fairplay.open_ckc(playback.get_license(FAIRPLAY, spc).data, spc) == (KID, KEY)


@pytest.mark.callback_errors
def test_licenceStep_whoseSuperclassFindsNone_hasItsErrorAsTheCause(stage: Stage) -> None:
    """If the JSON has no CkcMessage, the licence request fails, with the error of the superclass as `__cause__`
    (protocol.md: Licences)."""

    class Own(usher.CommonDelegate):
        def license_from_reply(self, call: usher.HookCall[bytes]) -> bytes:
            return call.builtin()

    stage.headend.faults.add("license", Fault.without("CkcMessage"))
    playback = play(
        stage, Own(stage.context, license_url=stage.headend.license_url("fairplay")), stage.headend.content_token()
    )
    with pytest.raises(usher.CallbackError) as caught:
        playback.get_license(FAIRPLAY, b"spc")
    assert type(caught.value.__cause__) is usher.ProtocolError
    assert caught.value.http_status == 200


def test_licenceStep_forAReplyWithAnError_isNotAsked(stage: Stage) -> None:
    """The library calls the hook that reads replies only for a reply with a licence; it reports an error reply without
    calling the hook (errors.md: Words)."""
    playback = play(stage, common(stage, license_from_reply=b"never"), stage.headend.content_token())
    stage.headend.faults.add("license", Fault.error(4027))
    with pytest.raises(usher.RefusedError) as caught:
        stage.clear_keys(playback)
    assert caught.value.service_code == 4027


def test_certificateStep_answers_inPlaceOfTheServer(stage: Stage) -> None:
    """certificate() may return any certificate, e.g. from the application's bundle, so the delegate needs no
    certificate URL (delegates.md: Hooks)."""
    playback = play(stage, common(stage, certificate=b"bundled"))
    assert playback.get_certificate() == b"bundled"
    assert playback.request_certificate().result(10) == b"bundled"
    assert stage.routes() == []


def test_certificateStep_ofTheSuperclass_fetchesItOnce(stage: Stage) -> None:
    """certificate() of the superclass downloads the certificate once; later calls return it from memory
    (protocol.md: Licences; delegates.md: Hooks)."""

    class Own(usher.CommonDelegate):
        def certificate(self, call: usher.HookCall[bytes]) -> bytes:
            return b"checked " + call.builtin()

    url = stage.headend.certificate_url("fairplay")
    playback = play(stage, Own(stage.context, license_url=stage.headend.license_url("fairplay"), certificate_url=url))
    first, second = playback.get_certificate(), playback.get_certificate()
    assert first == second
    assert first[:10] == b"checked \x30\x82"
    assert stage.routes() == ["certificate"]


@pytest.mark.callback_errors
def test_certificateStep_whoseDownloadFails_failsAndIsTriedAgain(stage: Stage) -> None:
    """If the download of the certificate fails, the next request downloads it again (protocol.md: Licences)."""

    class Own(usher.CommonDelegate):
        def certificate(self, call: usher.HookCall[bytes]) -> bytes:
            return call.builtin()

    url = stage.headend.certificate_url("fairplay")
    playback = play(stage, Own(stage.context, license_url=stage.headend.license_url("fairplay"), certificate_url=url))
    stage.headend.faults.add("certificate", Fault.status(503))
    with pytest.raises(usher.CallbackError) as caught:
        playback.get_certificate()
    assert type(caught.value.__cause__) is usher.HTTPStatusError
    assert playback.get_certificate()[:2] == b"\x30\x82"
    assert stage.routes() == ["certificate"] * 2


def test_contentIdentifierStep_answers_inPlaceOfTheBuiltInRule(stage: Stage) -> None:
    """If the delegate has the hook `content_identifier`, the library does not use the built-in rule: the hook gets the
    URL or asset ID, and its answer is the content identifier (delegates.md: Token map; delegates.md: Hooks)."""
    asked: list[Any] = []

    def content_identifier(self: Any, call: usher.HookCall[bytes]) -> bytes:
        asked.append((call.hook, call.asset_id, call.key_system, call.data))
        return b"id of " + (call.asset_id or b"")

    playback = play(stage, common(stage, content_identifier=content_identifier))
    assert playback.get_content_id("skd://x") == b"id of skd://x"
    assert playback.request_content_id(b"\xff\x00").result(10) == b"id of \xff\x00"
    assert asked == [(usher.Hook.CONTENT_ID, b"skd://x", "", None), (usher.Hook.CONTENT_ID, b"\xff\x00", "", None)]


def test_contentIdentifier_builtIn_isTheDecodedJson(stage: Stage) -> None:
    """Without a hook, the content identifier of a `skd:` URL is the text after `skd://`, without query and fragment. If
    this text is base64 of JSON, the identifier is the JSON text, as bytes. Otherwise it is the percent-decoded text
    (delegates.md: Token map)."""
    playback = play(stage, default(stage))
    assert playback.get_content_id(SKD) == IDENTIFIER
    assert playback.get_content_id(SKD.replace("skd:", "SKD:") + "?x=1#y") == IDENTIFIER
    assert playback.get_content_id("skd://plain-id") == b"plain-id"
    assert playback.get_content_id("skd://a%20b") == b"a b"
    for nothing in ("skd://", "skd://?x"):
        with pytest.raises(usher.InvalidArgumentError):
            playback.get_content_id(nothing)


def test_schemeStep_answers_whatIsStrippedFromIdentifiers(stage: Stage) -> None:
    """scheme() returns "skd" by default. If a subclass returns another scheme, the library removes this other scheme
    from identifiers (delegates.md: Hooks)."""

    class Own(usher.CommonDelegate):
        def scheme(self) -> str:
            return "vod+drm"

        def content_identifier(self, call: usher.HookCall[bytes]) -> bytes:
            return call.builtin()

    playback = play(stage, Own(stage.context, license_url=stage.headend.license_url("fairplay")))
    assert playback.get_content_id("vod+drm://plain-id") == b"plain-id"
    assert playback.get_content_id("skd://plain-id") == b"skd://plain-id"
    assert play(stage, default(stage)).get_content_id("vod+drm://plain-id") == b"vod+drm://plain-id"


@pytest.mark.parametrize("scheme", ["1a", "a b", "a:", "x" * 65])
def test_schemeStep_thatIsNoScheme_isRefused(stage: Stage, scheme: str) -> None:
    """A scheme starts with a letter and has only letters, digits, '+', '-' and '.'; the library refuses any other text
    (RFC 3986, 3.1)."""

    class Own(usher.CommonDelegate):
        def scheme(self) -> str:
            return scheme

    class OwnSSP(usher.SSPDelegate):
        def scheme(self) -> str:
            return scheme

    for kind in (Own, OwnSSP):
        with pytest.raises(usher.InvalidArgumentError):
            kind(stage.context, license_url=stage.headend.license_url("clearkey"))


def test_step_answeredWithTheBuiltIn_isAsIfItWereNotThere(stage: Stage) -> None:
    """If every hook answers with the built-in answer, the requests are the same as without hooks
    (delegates.md: Hooks)."""
    stage.headend.add_key(KID, KEY, "movie")
    asked: list[str] = []

    def leave(self: Any, call: usher.HookCall[Any]) -> Any:
        asked.append(call.hook.name)
        call.answer_builtin()

    steps = ("content_identifier", "certificate", "http_headers", "license_url", "license_body", "license_from_reply")
    delegate = common(
        stage, "fairplay", certificate_url=stage.headend.certificate_url("fairplay"), **dict.fromkeys(steps, leave)
    )
    playback = play(stage, delegate, stage.headend.content_token(content_id="movie"))
    identifier = playback.get_content_id(SKD)
    spc = fairplay.make_spc(identifier, playback.get_certificate())
    assert fairplay.open_ckc(playback.get_license(FAIRPLAY, spc).data, spc) == (KID, KEY)
    assert asked == ["CONTENT_ID", "CERTIFICATE", "LICENSE_URL", "LICENSE_BODY", "HEADERS", "LICENSE"]


def test_steps_ofAnSspDelegate_applyToItsLicencesToo(stage_factory: StageFactory) -> None:
    """An SSP delegate is a common delegate with sessions: its hooks change licence requests, but not set-up and
    heartbeats (delegates.md: Hooks)."""
    stage = stage_factory()
    asked: list[Any] = []

    class Own(usher.SSPDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> dict[str, str]:
            made = call.builtin()
            asked.append(made[HEADER].count(","))
            return {**made, "X-Own": "1"}

        def license_from_reply(self, call: usher.HookCall[bytes]) -> bytes:
            return call.builtin()

    delegate = stage.delegate(kind=Own)
    playback = stage.play(delegate=delegate)
    stage.settle()
    assert stage.clear_keys(playback) == {KID: KEY}
    stage.advance(60_000)
    playback.close()
    stage.settle()
    assert asked == [1], "the built-in headers: content token and session token"
    assert [(entry.route, entry.header("x-own")) for entry in stage.headend.journal] == [
        ("setup", None),
        ("license", "1"),
        ("heartbeat", None),
        ("teardown", None),
    ]


def test_licenceStep_ofAnEnforcedSession_leavesTheSessionTokenToTheLibrary(stage_factory: StageFactory) -> None:
    """If a hook overrides getCkcFromLicenseResponse(), the library still takes sessionToken from each reply: renewals
    and teardown carry the newest token (delegates.md: Hooks; protocol.md: Heartbeats or renewals)."""
    stage = stage_factory(headend={"enforced": {"clearkey"}})

    class Own(usher.SSPDelegate):
        def license_from_reply(self, call: usher.HookCall[bytes]) -> bytes:
            return b"mine, from " + call.type.name.encode()

    renewed: list[bytes] = []
    delegate = stage.delegate(kind=Own)
    playback = stage.play(
        delegate=delegate, payload=lambda request: CHALLENGE, renewed=lambda p, license: renewed.append(license.data)
    )
    stage.settle()
    license = playback.get_license(CLEARKEY, CHALLENGE)
    assert (license.data, license.renew_type) == (b"mine, from REQUEST", usher.RenewType.ENFORCED)
    stage.advance(60_000)
    assert renewed == [b"mine, from RENEWAL"]
    playback.close()
    stage.settle()
    assert stage.seqs() == [("setup", None), ("license", 1), ("license-renewal", 2), ("teardown", 3)]
