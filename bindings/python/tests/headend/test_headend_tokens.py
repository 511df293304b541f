"""Tests which tokens and authorisation headers the head-end accepts, and with which error codes it refuses the
others."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from headend_client import AUTH, Client, raw
from hypothesis import given
from hypothesis import strategies as st

from pytest_usher import HeadEndFactory
from usher.testing.headend import CodeTable, HeadEnd, Problem
from usher.testing.headend.state.tokens import TokenMint, b64url, unb64url

MINT = TokenMint(b"a key of this test", "key-1", "TENANT1")


def claims_of(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    value = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert isinstance(value, dict)
    return value


def test_contentToken_hasTheDocumentedClaims(headend: HeadEnd) -> None:
    token = headend.content_token("alice", "movie", max_sessions=3, device="tv", kids=[bytes(16)], jti="once", note="x")
    assert claims_of(token) == {
        "typ": "ContentAuthZ",
        "ver": "1.0",
        "tenantId": "TENANT1",
        "contentRights": [
            {
                "contentId": "movie",
                "sessionControl": {"sessionControlEnabled": True, "maxSessions": 3},
                "defaultKcIds": ["00000000-0000-0000-0000-000000000000"],
            }
        ],
        "device": {"accountId": "alice", "deviceId": "tv"},
        "exp": headend.now_ms // 1000 + 86_400,
        "jti": "once",
        "note": "x",
    }


def test_sessionToken_isAJwtThatShowsRotation(headend: HeadEnd, client: Client) -> None:
    first = client.setup(headend.content_token("alice", device="tv")).token
    second = client.heartbeat(first).token
    session = headend.sessions.only()
    claims = claims_of(first)
    assert (claims["typ"], claims["jti"], claims["seq"], claims["accountId"]) == ("SSMSession", session.id, 1, "alice")
    assert claims["exp"] == session.created_ms // 1000 + 86_400
    assert claims_of(second) == {**claims, "seq": 2}


def refusals(he: HeadEnd) -> dict[str, tuple[str, int, int]]:
    """Returns bad content tokens. For each name: the header value, the error code of the SSM, and the error code of the
    licence service."""
    return {
        "bad signature": (he.content_token(key=b"another key"), 1006, 3004),
        "expired": (he.content_token(expires_in_s=-1), 1004, 4005),
        "expires now": (he.content_token(expires_in_s=0), 1004, 4005),
        "tenant": (he.content_token(tenantId="OTHER"), 1005, 4009),
        "not a token": ("nonsense", 1006, 3006),
        "not JSON": ("e30.bm9wZQ.AAAA", 1006, 3006),
        "unsigned": (f"{b64url(b'{}')}.{b64url(json.dumps({'typ': 'ContentAuthZ'}).encode())}.", 1006, 3004),
        "unknown kind": (he.content_token(typ="Other"), 1006, 3005),
        "two content tokens": (f"{he.content_token()},{he.content_token()}", 1000, 4003),
        "empty part": (f"{he.content_token()},", 1000, 1004),
        "space": (f"{he.content_token()}, {he.content_token_with_key().split(',')[1]}", 1000, 1004),
        "exp of the wrong type": (he.content_token(exp="tomorrow"), 1004, 4005),
        "key token alone": (he.content_token_with_key().split(",")[1], 1003, 4001),
        "operator token": (he.operator_token(), 1006, 4001),
    }


@pytest.mark.parametrize("name", sorted(refusals(HeadEnd(clock="manual"))))
def test_badToken_isRefusedByTheTable(headend: HeadEnd, client: Client, name: str) -> None:
    value, ssm, license = refusals(headend)[name]
    assert (client.setup(value).code, client.license("fairplay", value).code) == (ssm, license)
    assert all(entry.status == 400 and entry.error_code for entry in headend.journal)
    assert len(headend.sessions) == 0


def test_token_expiry_followsTheHeadEndsClock(headend: HeadEnd, client: Client) -> None:
    token = headend.content_token(expires_in_s=10)
    headend.advance(9_999)
    assert client.setup(token).status == 200
    headend.advance(1)
    assert client.setup(token).code == 1004


def test_sessionToken_forgedOrNeverIssued_is1006(headend: HeadEnd, client: Client) -> None:
    client.setup()
    session = headend.sessions.only()
    mint = TokenMint(headend.config.hmac_key, "usher-fixture-1", "TENANT1")
    forged: dict[str, Any] = {"session": session.id, "account": "account-1", "device": None, "exp": headend.now_ms}
    assert client.heartbeat(mint.session(seq=2, **forged)).code == 1006
    assert client.heartbeat(mint.session(**{**forged, "session": "0" * 32}, seq=1)).code == 1006
    assert client.heartbeat(TokenMint(b"?", "k", "TENANT1").session(seq=1, **forged)).code == 1006
    assert client.heartbeat(mint.session(**{**forged, "exp": 1}, seq=1)).code == 1004
    assert client.heartbeat(mint.session(seq=1, **forged)).status == 200


def test_sessionToken_notLast_isAFormatError(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token()
    assert client.license("fairplay", f"{client.setup(content).token},{content}").code == 1004


def test_spaceAfterComma_isRefusedAndSeenInTheJournal(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token()
    session = client.setup(content).token
    assert client.license("fairplay", f"{content}, {session}").code == 1004
    entry = headend.journal.last("license")
    assert entry.authorization.spaced and [part.spaced for part in entry.parts] == [False, True]
    assert ", " in (entry.header(AUTH) or "")
    assert "(space at comma)" in headend.journal.dump()
    assert [violation.kind for violation in headend.violations()] == ["space-after-comma"]


def test_lenientHeader_takesSpacesLinesAndPercents(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(strict_header=False)
    client, content = Client(he), he.content_token()
    session = client.setup(content).token
    assert client.license("fairplay", f"{content}, {session}").status == 200
    assert client.license("fairplay", f"{content}%2C{session}").status == 200
    assert client.heartbeat(f"{content},{session}").status == 200


def test_severalHeaderLines_areRefusedWhenStrict(headend: HeadEnd) -> None:
    lines = f"{AUTH}: {headend.content_token()}\r\n{AUTH}: {headend.content_token_with_key().split(',')[1]}\r\n"
    request = "POST /TENANT1/ssm/v1/sessions/setup HTTP/1.1\r\nHost: x\r\n"
    head = f"{request}{lines}Connection: close\r\nContent-Length: 0\r\n\r\n"
    assert b'"errorCode": 1000' in raw(headend, head.encode())
    assert headend.journal[0].authorization.lines == 2
    assert len(headend.journal[0].header_values(AUTH)) == 2


def test_headerName_isComparedWithoutCaseAndConfigurable(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(auth_headers=("nv-authorizations", "X-Token"))
    client = Client(he)
    for name in ("NV-Authorizations", "x-token"):
        assert client.ssm("setup", None, headers={name: he.content_token()}).status == 200
    assert Client(headend_factory()).ssm("setup", None, headers={"X-Token": he.content_token()}).code == 1003


def test_tenantHeader_mustBeOurs(headend: HeadEnd, client: Client) -> None:
    assert client.setup(headers={"nv-tenant-id": "TENANT1"}).status == 200
    assert client.setup(headers={"nv-tenant-id": "OTHER"}).code == 1005


def test_codeTable_canBeReplacedRowByRow(headend_factory: HeadEndFactory) -> None:
    codes = CodeTable().replacing(
        ssm={Problem.LIMIT_REACHED: 4001, Problem.TOKEN_MISSING: 4000},
        license={Problem.TOKEN_MISSING: 4001},
        license_status={4001: 401},
    )
    client = Client(headend_factory(codes=codes, limit=0))
    limit, missing, license = client.setup(), client.heartbeat(None), client.license("fairplay", None)
    assert (limit.status, limit.code) == (503, 4001)
    assert (missing.status, missing.code) == (400, 1003)
    assert (license.status, license.code) == (401, 4001)
    assert (client.setup("").status, client.setup("").code) == (500, 4000)


def test_headersOf60kB_areAccepted(headend: HeadEnd, client: Client) -> None:
    content = headend.content_token(padding="x" * 45_000)
    assert len(content) > 60_000
    assert client.setup(content).status == 200
    assert headend.journal.last("setup").header(AUTH) == content


@given(st.binary(max_size=64))
def test_base64url_roundTrips(data: bytes) -> None:
    assert unb64url(b64url(data)) == data


@given(
    st.lists(st.text(alphabet=st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=60), max_size=3),
    st.booleans(),
)
def test_reading_anyHeader_neverFails(values: list[str], strict: bool) -> None:
    authorization = MINT.read(values, strict=strict)
    for part in authorization.parts:
        assert not part.signed
        assert part.short and part.kind in ("unknown", "key")
        assert (part.account, part.device, part.content_ids, part.max_sessions) == (None, None, (), None)


@given(st.dictionaries(st.text(max_size=8), st.one_of(st.text(max_size=8), st.integers(), st.none()), max_size=4))
def test_reading_anySignedClaims_verifies(claims: dict[str, Any]) -> None:
    (part,) = MINT.read([MINT.sign(claims)], strict=True).parts
    assert part.signed and part.claims == claims


@pytest.mark.parametrize("form", ["uuid", "letters", "digits", "mixed"])
def test_opaqueTokens_areAcceptedLikeJWTs(headend_factory: HeadEndFactory, form: str) -> None:
    headend = headend_factory(token_form=form)
    client, tokens = Client(headend), []
    for number in range(20):
        content = headend.content_token("alice", max_sessions=99, marker=number)
        first = client.setup(content).token
        second = client.heartbeat(first).token
        assert client.heartbeat(first).code == 1006, "a session token that was replaced"
        assert client.teardown(second).status == 200
        tokens += [content, first, second]
    shapes = {"uuid": r"[0-9a-f-]{36}", "letters": r"[a-z]{12}", "digits": r"[0-9]{13}"}
    assert len(set(tokens)) == 60
    for name, shape in shapes.items():
        count = sum(1 for token in tokens if re.fullmatch(shape, token))
        assert count == 60 if form == name else (count > 5 if form == "mixed" else count == 0)
