"""Content, servers and hosts give bad input to a resource loader: the library sends no request to a server that is not
on the allow-list, and does not crash."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.fps import CDM, CONTENT, SKD, failed, host, loader, play, ready, skd
from usher.testing import fairplay
from usher.testing.headend import Fault
from usher.testing.headend.knobs import Sees

# ---- the allow-list --------------------------------------------------------------------------------------------------

OUTSIDE = [
    ("another host", "skd://evil.example.com/ckc"),
    ("user info", "skd://127.0.0.1:{port}@evil.example.com/ckc"),
    ("user info with a password", "skd://127.0.0.1:{port}:x@evil.example.com/ckc"),
    ("user info of an allowed host", "skd://user@127.0.0.1:{port}/ckc"),
    ("empty user info", "skd://@127.0.0.1:{port}/ckc"),
    ("another port", "skd://127.0.0.1:1/ckc"),
    ("no port", "skd://127.0.0.1/ckc"),
    ("empty port", "skd://127.0.0.1:/ckc"),
    ("port with zeros", "skd://127.0.0.1:0{port}/ckc"),
    ("port wrapped", "skd://127.0.0.1:{wrapped}/ckc"),
    ("port with a sign", "skd://127.0.0.1:+{port}/ckc"),
    ("two ports", "skd://127.0.0.1:{port}:1/ckc"),
    ("trailing dot", "skd://127.0.0.1.:{port}/ckc"),
    ("host after a dot", "skd://127.0.0.1.evil.example.com:{port}/ckc"),
    ("decimal address", "skd://2130706433:{port}/ckc"),
    ("hexadecimal address", "skd://0x7f000001:{port}/ckc"),
    ("octal address", "skd://0177.0.0.1:{port}/ckc"),
    ("short address", "skd://127.1:{port}/ckc"),
    ("IPv6 of it", "skd://[::ffff:127.0.0.1]:{port}/ckc"),
    ("IPv6 loopback", "skd://[::1]:{port}/ckc"),
    ("broken IPv6", "skd://[127.0.0.1:{port}/ckc"),
    ("localhost", "skd://localhost:{port}/ckc"),
    ("percent-coded dot", "skd://127%2E0.0.1:{port}/ckc"),
    ("percent-coded slash", "skd://evil.example.com%2F127.0.0.1:{port}/ckc"),
    ("percent-coded at", "skd://127.0.0.1:{port}%40evil.example.com/ckc"),
    ("percent-coded digits", "skd://%31%32%37.0.0.1:{port}/ckc"),
    ("full-width digits", "skd://\uff11\uff12\uff17.0.0.1:{port}/ckc"),
    ("full-width dot", "skd://127\u30020.0.1:{port}/ckc"),
    ("other alphabet", "skd://127.0.0.1.\u0435xample.com:{port}/ckc"),
    ("punycode", "skd://xn--evil-9na.example.com/ckc"),
    ("backslash", "skd://127.0.0.1:{port}\\@evil.example.com/ckc"),
    ("backslash for a slash", "skd:\\\\evil.example.com/ckc"),
    ("blank in the host", "skd://127.0.0.1 :{port}/ckc"),
    ("tab in the host", "skd://127.0.0.1\t:{port}/ckc"),
    ("line feed", "skd://127.0.0.1:{port}/\nHost: evil.example.com"),
    ("header injection", "skd://127.0.0.1:{port}/ckc HTTP/1.1\r\nX: y\r\n\r\n"),
    ("query first", "skd://?x@127.0.0.1:{port}/ckc"),
    ("fragment first", "skd://#@127.0.0.1:{port}/ckc"),
    ("fragment in the host", "skd://evil.example.com#@127.0.0.1:{port}/ckc"),
    ("no host", "skd:///ckc"),
    ("only a port", "skd://:{port}/ckc"),
    ("no slashes, elsewhere", "skd:evil.example.com/ckc"),
    ("inner http", "skd:http://127.0.0.1:{port}/ckc"),
    ("inner file", "skd:file:///etc/passwd"),
    ("inner https elsewhere", "skd:https://evil.example.com/ckc"),
    ("inner gopher", "skd:gopher://127.0.0.1:{port}/ckc"),
    ("inner skd", "skd:skd://127.0.0.1:{port}/ckc"),
    ("below the host", "skd://sub.127.0.0.1:{port}/ckc"),
    ("label of dashes", "skd://-127.0.0.1:{port}/ckc"),
]


@pytest.mark.parametrize("url", [url for _, url in OUTSIDE], ids=[name for name, _ in OUTSIDE])
@pytest.mark.parametrize(
    "route", [usher.Route.KEY_SERVER, usher.Route.ENTITLEMENT, usher.Route.TOKEN_URL], ids=lambda route: route.name
)
def test_url_thatIsNotOnTheList_isNeverAsked(stage: Stage, url: str, route: usher.Route) -> None:
    cdm = CDM()
    loader(stage, cdm, route=route, allowed_hosts=[host(stage)], content_id_rule=usher.ContentIDRule.WHOLE_URL)
    text = url.replace("{port}", str(stage.headend.port)).replace("{wrapped}", str(stage.headend.port + 65_536))
    error = failed(play(stage), text)
    assert isinstance(error, (usher.NotAllowedError, usher.InvalidArgumentError)), error
    stage.settle()
    assert (stage.headend.journal.entries(), cdm.asked) == ([], [])


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "*.com",
        "*.",
        "**.example.com",
        "a..b",
        "http://a",
        "a/b",
        "a:0",
        "a:65536",
        "a:x",
        "a b@c",
        "ä.example.com",
        "127.1",
        "*.127.0.0.1",
        "[::1",
        "a" * 300,
    ],
)
def test_pattern_thatIsNone_isRefused(stage: Stage, pattern: str) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        loader(stage, allowed_hosts=[pattern])


@pytest.mark.parametrize(
    ("pattern", "url", "is_allowed"),
    [
        ("127.0.0.1:{port}", "skd://127.0.0.1:{port}/{path}", True),
        ("127.0.0.1:*", "skd://127.0.0.1:{port}/{path}", True),
        ("127.0.0.1", "skd://127.0.0.1:{port}/{path}", False),
        ("localhost:{port}", "skd://LocalHost:{port}/{path}", True),
        ("LOCALHOST.:{port}", "skd://localhost:{port}/{path}", True),
        ("*.localhost.example:*", "skd://localhost.example:{port}/{path}", False),
        ("[::1]:*", "skd://127.0.0.1:{port}/{path}", False),
        ("keys.example.com other.example.com:1 127.0.0.1:{port}", "skd://127.0.0.1:{port}/{path}", True),
    ],
)
def test_pattern_allowsWhatItNames(stage: Stage, pattern: str, url: str, is_allowed: bool) -> None:
    ready(stage)
    port = str(stage.headend.port)
    loader(stage, allowed_hosts=pattern.replace("{port}", port), content_id_rule=usher.ContentIDRule.AFTER_SEMICOLON)
    text = url.replace("{port}", port).replace("{path}", f"TENANT1/fps/ckc?;{CONTENT}")
    if is_allowed:
        assert play(stage).get_resource(text)
    else:
        assert isinstance(failed(play(stage), text), usher.NotAllowedError)


def test_noList_noUrlOfTheContentIsUsed(stage: Stage) -> None:
    ready(stage)
    usher.ResourceLoader(stage.context, CDM(), derived_scheme="http", route=usher.Route.TOKEN_URL)
    assert isinstance(failed(play(stage), skd(stage.headend.rights_token_url(CONTENT))), usher.NotAllowedError)
    assert stage.routes() == []


def test_fixedUrls_needNoList(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    usher.ResourceLoader(
        stage.context, cdm, license_url=stage.headend.fps_url, certificate_url=stage.headend.fps_certificate_url
    )
    assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)


def test_tokenUrlOfAnEntitlementServer_elsewhere_isNeverAsked(stage_factory: StageFactory) -> None:
    for elsewhere in (
        "http://127.0.0.1:1/hms/",
        "https://evil.example.com/hms/",
        "ftp://127.0.0.1/",
        "//evil.example.com/",
        "/hms/fp/rights/",
    ):
        stage = stage_factory(headend={"sees": Sees(rights_url=elsewhere)})
        ready(stage)
        cdm = CDM()
        loader(stage, cdm, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
        assert isinstance(failed(play(stage)), usher.NotAllowedError)
        assert (stage.routes(), cdm.asked) == (["entitlement"], [])


@pytest.mark.parametrize("step", ["certificate", "entitlement", "rights"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_isNeverFollowed(stage: Stage, step: str, status: int) -> None:
    ready(stage)
    loader(
        stage,
        route=usher.Route.ENTITLEMENT,
        entitlement_url=stage.headend.entitlement_url,
        certificate_url=stage.headend.fps_certificate_url,
        allowed_hosts=["127.0.0.1:*"],
    )
    stage.headend.faults.add(step, Fault.reply(status, headers={"Location": stage.headend.fps_certificate_url}))
    assert isinstance(failed(play(stage)), usher.RedirectError)
    assert stage.routes()[-1] == step
    assert stage.routes().count(step) == 1


@pytest.mark.parametrize("scheme", ["ftp", "HTTPS", "https:", "skd", " http", ""])
def test_derivedScheme_otherThanHttpAndHttps_isRefused(stage: Stage, scheme: str) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        loader(stage, derived_scheme=scheme)


def test_derivedHttp_ofAHostThatIsNotLoopback_isRefused(stage: Stage) -> None:
    loader(stage, allowed_hosts=["keys.example.com"], derived_scheme="http")
    assert isinstance(failed(play(stage), "skd://keys.example.com/ckc"), usher.NotAllowedError)


# ---- URLs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["", "skd:", "skd://", "skd:///", "skd://?x=1", "skd://#x", "skd:#"])
def test_url_thatNamesNothing_isRefused(stage: Stage, url: str) -> None:
    loader(stage, allowed_hosts=[host(stage)])
    playback = play(stage)
    with pytest.raises(usher.InvalidArgumentError):
        playback.load_resource(url)
    assert stage.routes() == []


@pytest.mark.parametrize("size", [65_536, 65_537, 1_000_000, 10_000_000])
def test_url_ofEverySize_isLoadedOrRefused(stage: Stage, size: int) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    url = "skd://" + "a" * (size - 6)
    playback = play(stage)
    error = failed(playback, url)
    if size > 65_536:
        assert isinstance(error, usher.InvalidArgumentError)
        assert stage.routes() == []
    else:
        assert isinstance(error, usher.RefusedError), "the head-end does not know this content"
        assert cdm.asked[0].content_id == url[6:].encode()


@pytest.mark.parametrize("size", [8_193, 60_000])
def test_derivedUrl_tooLongForAServer_isRefused(stage: Stage, size: int) -> None:
    loader(stage, allowed_hosts=[host(stage)])
    url = skd(stage.headend.fps_url) + "?" + "a" * size
    assert isinstance(failed(play(stage), url), (usher.InvalidArgumentError, usher.NotAllowedError))
    assert stage.routes() == []


NOT_BASE64 = [
    "movie-1",
    "movie 1",
    "eyJDb250ZW50SWQi*",
    "====",
    "e30",
    "bnVsbA==",
    "W10=",
    "Zm9v",
    "%",
    "%4",
    "%zz",
    "\x00",
    "a\nb",
    "\xff\xfe",
    "💿",
]


@pytest.mark.parametrize("text", NOT_BASE64, ids=ascii)
def test_assetId_thatIsNoBase64OfJson_isItsOwnIdentifier(stage: Stage, text: str) -> None:
    """If an asset id is not base64 of JSON, the identifier is the asset id itself, percent-decoded. (The asset id `e30`
    is base64 of the JSON text `{}`, so its identifier is `{}`.)"""
    cdm = CDM()
    loader(stage, cdm)
    stage.headend.faults.add("ckc", Fault.reply(200, body=b"\xfb" * 20), always=True)
    play(stage).get_resource(f"skd://{text}")
    wanted = b"{}" if text == "e30" else text.encode()
    assert cdm.asked[0].content_id == wanted


@pytest.mark.parametrize("form", ["padded", "unpadded", "urlsafe", "percent", "slash"])
def test_assetId_inEveryBase64_isDecoded(stage: Stage, form: str) -> None:
    ready(stage)
    text = json.dumps(
        {"ContentId": CONTENT, "KeyId": "00112233-4455-6677-8899-aabbccddeeff", "IV": "A" * 22 + "==", "x": "??>>~~"}
    )
    padded = base64.b64encode(text.encode()).decode()
    asset = {
        "padded": padded,
        "unpadded": padded.rstrip("="),
        "urlsafe": padded.replace("+", "-").replace("/", "_"),
        "percent": padded.replace("/", "%2F").replace("+", "%2b").replace("=", "%3D"),
        "slash": padded + "/",
    }[form]
    cdm = CDM()
    loader(stage, cdm)
    assert cdm.opened(play(stage).get_resource(f"skd://{asset}")) == (KID, KEY)
    assert json.loads(cdm.asked[0].content_id)["ContentId"] == CONTENT


def test_assetIdOfMediaOfTheRepository_withTraps_isReadRight(stage: Stage) -> None:
    """The library reads the content id `preview-a?b=~1` correctly, although it has "?" and "=", and the base64 of its
    JSON has slashes, plus signs and upper-case letters."""
    from stage.fps import MEDIA

    contents = {content.content_id: content for content in stage.headend.add_media(MEDIA)}
    cdm = CDM()
    loader(stage, cdm)
    playback = play(stage)
    for content in contents.values():
        for key in content.keys:
            assert cdm.opened(playback.get_resource(key.skd or "")) == (key.kid, key.key)


@pytest.mark.parametrize("depth", [1_000, 30_000])
def test_assetId_ofDeepJson_isNoTrap(stage: Stage, depth: int) -> None:
    cdm = CDM()
    loader(stage, cdm)
    stage.headend.faults.add("ckc", Fault.reply(200, body=b"\xfb" * 20))
    deep = base64.b64encode(b'{"a":' + b"[" * depth).decode()
    play(stage).get_resource(f"skd://{deep}")
    assert cdm.asked[0].content_id == deep.encode()


def test_contentThatIsNoText_cannotBeAskedAnEntitlementFor(stage: Stage) -> None:
    ready(stage)
    loader(stage, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    error = failed(play(stage), b"skd://\xff\xfe")
    assert isinstance(error, usher.InvalidArgumentError)
    assert stage.routes() == []


def test_entitlementQuestion_ofANameWithQuotes_isJson(stage: Stage) -> None:
    name = 'movie "1"\\\n\u2028💿'
    stage.headend.add_key(KID, KEY, name)
    cdm = CDM()
    loader(stage, cdm, route=usher.Route.ENTITLEMENT, entitlement_url=stage.headend.entitlement_url)
    assert cdm.opened(play(stage).get_resource(fairplay.skd_url(name, KID, bytes(16)))) == (KID, KEY)
    assert json.loads(stage.sent("entitlement")[0].body)["contentID"] == name


# ---- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"route": 3},
        {"route": -1},
        {"request_format": 4},
        {"request_format": 256},
        {"spc_urlencode": 3},
        {"response_format": 5},
        {"response_format": -1},
        {"license_url": "not a URL"},
        {"license_url": "ftp://127.0.0.1/"},
        {"license_url": "http://keys.example.com/"},
        {"entitlement_url": "skd://x"},
        {"certificate_url": ""},
        {"certificate_url": "file:///etc/passwd"},
        {"extra_headers": "no colon"},
        {"extra_headers": "A: b\r\nC: d"},
        {"extra_headers": "A: b\0"},
        {"customer_cookie": "c" * 33},
        {"certificate_file": ""},
    ],
    ids=str,
)
def test_option_thatIsNone_isRefused_andNothingIsRegistered(stage: Stage, options: dict[str, Any]) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        usher.ResourceLoader(stage.context, CDM(), **options)
    with pytest.raises(usher.NoDelegateError):
        play(stage)


def test_hosts_withBlanksInside_areRefused(stage: Stage) -> None:
    for hosts in (["a.example.com b.example.com"], ["a\tb"], [""]):
        with pytest.raises(usher.InvalidArgumentError):
            loader(stage, allowed_hosts=hosts)


def test_option_unknown_isATypeError(stage: Stage) -> None:
    for name in ("licence_url", "user_data", "destroy", "struct_size", "certificate_size"):
        with pytest.raises(TypeError):
            usher.ResourceLoader(stage.context, CDM(), **{name: None})


# ---- bodies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["certificate", "entitlement", "rights"])
def test_body_tooLarge_endsTheRequestBeforeItIsWhole(stage_factory: StageFactory, step: str) -> None:
    stage = stage_factory(max_response_bytes=20_000)
    ready(stage)
    loader(
        stage,
        route=usher.Route.ENTITLEMENT,
        entitlement_url=stage.headend.entitlement_url,
        certificate_url=stage.headend.fps_certificate_url,
    )
    stage.headend.faults.add(step, Fault.endless(1_000_000_000))
    assert isinstance(failed(play(stage)), usher.TooLargeError)


@pytest.mark.parametrize("step", ["certificate", "entitlement", "rights"])
@pytest.mark.parametrize(
    "fault",
    [Fault.truncate(), Fault.bad_chunks(), Fault.truncated_chunks(), Fault.reset_in_headers()],
    ids=lambda fault: fault.label,
)
def test_body_cutShort_isNoAnswer(stage: Stage, step: str, fault: Fault) -> None:
    ready(stage)
    loader(
        stage,
        route=usher.Route.ENTITLEMENT,
        entitlement_url=stage.headend.entitlement_url,
        certificate_url=stage.headend.fps_certificate_url,
    )
    stage.headend.faults.add(step, fault, always=True)
    assert isinstance(failed(play(stage)), usher.TransportError)
