"""Tests the kinds of tokens: device tokens, content key tokens, revoked tokens, and the contents that a token
grants."""

from __future__ import annotations

import base64
import uuid
from typing import Any

import pytest
from headend_client import Answer, Client
from headend_requests import ALL_KINDS, ask, b64url

from pytest_usher import HeadEndFactory
from usher.testing import fairplay
from usher.testing.headend import Api, HeadEnd, KeySystem

KID_A, KEY_A, KID_B, KEY_B = b"a" * 16, b"A" * 16, b"b" * 16, b"B" * 16
LATER_KID, LATER_KEY = b"l" * 16, b"L" * 16
APIS: tuple[Api, ...] = ("v1", "v2")


def clear_keys(client: Client, token: str, *kids: bytes, **options: Any) -> Answer:
    return client.license("clearkey", token, {"kids": [b64url(kid) for kid in kids]}, **options)


def keys_of(reply: Answer) -> dict[str, str]:
    assert reply.status == 200, reply.body
    return {key["kid"]: key["k"] for key in reply.json["keys"]}


# Device tokens (DevAuthN).


def test_device_unregistered_countsForTheAccountItNames_untilOneIsRegistered(headend: HeadEnd, client: Client) -> None:
    token = headend.device_token("alice", "tv")
    assert client.setup(token).status == 200
    headend.register_device("phone", "alice")
    refused = client.setup(token)
    assert (refused.status, refused.code, refused.json["message"]) == (400, 3004, "device 'tv' is not registered")
    assert ask(client, "fairplay", token).code == 4018
    headend.register_device("tv", "alice")
    assert client.setup(token).status == 200
    headend.unregister_device("tv")
    assert client.setup(token).code == 3004


def test_device_registered_countsForItsAccount(headend: HeadEnd, client: Client) -> None:
    headend.register_device("tv", "alice")
    session = client.setup(headend.device_token(None, "tv")).token
    assert headend.sessions.only("alice").device == "tv"
    assert client.setup(headend.device_token("bob", "tv")).code == 1009
    assert ask(client, "fairplay", f"{headend.device_token('bob', 'tv')},{session}").code == 4019
    assert ask(client, "fairplay", f"{headend.device_token(None, 'tv')},{session}").status == 200
    headend.register_device("phone", "bob")
    assert ask(client, "fairplay", f"{headend.device_token(None, 'phone')},{session}").code == 4010


@pytest.mark.parametrize("api", APIS)
def test_device_rights_areOfTheAccount(headend_factory: HeadEndFactory, api: Api) -> None:
    he = headend_factory()
    client, token = Client(he), he.device_token("alice", "tv")
    he.add_key(KID_A, KEY_A, "A")
    he.add_key(KID_B, KEY_B, "B")
    he.grant_rights("alice", "A", max_sessions=1)

    def tokens() -> str:
        return token if api == "v2" else f"{token},{client.setup(token).token}"

    first = clear_keys(client, tokens(), KID_A, api=api)
    assert keys_of(first) == {b64url(KID_A): b64url(KEY_A)}
    if api == "v1":
        assert client.setup(token).code == 1007
        he.kill_account("alice")
        assert clear_keys(client, tokens(), KID_B).code == 4000
    else:
        assert clear_keys(client, token, KID_A, api=api).code == 1007
        he.kill_account("alice")
        assert clear_keys(client, token, KID_B, api=api).code == 4000
        assert he.sessions.active() == []
    he.kill_account("alice")
    he.grant_rights("alice", "A", "B")
    assert len(keys_of(clear_keys(client, tokens(), KID_A, KID_B, api=api))) == 2


def test_device_sessionControl_isOfTheAccount(headend: HeadEnd, client: Client) -> None:
    token = headend.device_token("alice", "tv")
    assert ask(client, "fairplay", token).code == 4000
    headend.grant_rights("alice", session_control=False)
    assert ask(client, "fairplay", token).status == 200
    assert "sessionToken" not in ask(client, "fairplay", token, api="v2").json


# Content key tokens.


@pytest.mark.parametrize("api", APIS)
def test_keyToken_carriesTheKeys(headend: HeadEnd, client: Client, api: Api) -> None:
    token = headend.content_token_with_key("alice", "movie", keys={KID_A: KEY_A, KID_B: KEY_B})
    assert token.count(",") == 1 and token.split(",")[1].count(".") == 4
    sent = token if api == "v2" else f"{token},{client.setup(token).token}"
    reply = clear_keys(client, sent, KID_B, KID_A, api=api)
    assert keys_of(reply) == {b64url(KID_A): b64url(KEY_A), b64url(KID_B): b64url(KEY_B)}
    assert [part.kind for part in headend.journal.last("license").parts] == ["content", "key", "session"][
        : 2 if api == "v2" else 3
    ]


def test_keyToken_goesBeforeTheKeyStore(headend: HeadEnd, client: Client) -> None:
    headend.add_key(KID_A, KEY_B)
    token = headend.content_token_with_key(keys={KID_A: KEY_A})
    spc = fairplay.make_spc(fairplay.identifier("content-1", KID_A, bytes(16)))
    reply = client.license("fairplay", token, spc, api="v2")
    assert fairplay.open_ckc(base64.b64decode(reply.json["CkcMessage"]), spc) == (KID_A, KEY_A)


@pytest.mark.parametrize("where", ["set-up", "licence v1", "licence v2"])
@pytest.mark.parametrize(
    ("damage", "ssm", "license"),
    [
        ("lost", 1012, 4002),
        ("another", 1012, 4002),
        ("cut", 1012, 4002),
        ("flipped", 1012, 4002),
        ("flipped, not named", 1006, 3004),
        ("not ours", 1006, 3004),
    ],
)
def test_keyToken_lostOrDamaged_isNoticed(
    headend: HeadEnd, client: Client, where: str, damage: str, ssm: int, license: int
) -> None:
    token = headend.content_token_with_key(keys={KID_A: KEY_A})
    content, key = token.split(",")
    flipped = f"{key[:-5]}{'A' if key[-5] != 'A' else 'B'}{key[-4:]}"
    not_ours = HeadEnd(clock="manual", hmac_key=b"another").content_token_with_key().split(",")[1]
    damaged = {
        "lost": content,
        "another": f"{content},{headend.content_token_with_key().split(',')[1]}",
        "cut": f"{content},{key[:-1]}",
        "flipped": f"{content},{flipped}",
        "flipped, not named": f"{headend.content_token()},{flipped}",
        "not ours": f"{headend.content_token()},{not_ours}",
    }[damage]
    session = client.setup(token).token
    refused = {
        "set-up": lambda: client.setup(damaged),
        "licence v1": lambda: clear_keys(client, f"{damaged},{session}", KID_A),
        "licence v2": lambda: clear_keys(client, damaged, KID_A, api="v2"),
    }[where]()
    assert (refused.status, refused.code) == (400, ssm if where == "set-up" else license)


# The tests below check revoked tokens, and requests without a token.


@pytest.mark.parametrize("status", [401, 403])
def test_revokedTokens_areRefused_newerOnesAreTaken(headend_factory: HeadEndFactory, status: int) -> None:
    he = headend_factory(revoked_token_status=status)
    client, old, device = Client(he), he.content_token(), he.device_token()
    session = client.setup(old).token
    he.revoke_tokens()
    refused = client.setup(old)
    assert (refused.status, refused.code, refused.json["message"]) == (status, 1003, "token is no longer accepted")
    for key_system in ALL_KINDS:
        refused = ask(client, key_system, f"{old},{session}")
        assert (refused.status, refused.code) == (status, 4000)
    assert ask(client, "fairplay", old, api="v2").status == status
    assert client.setup(device).status == status
    new = he.content_token()
    assert ask(client, "fairplay", f"{new},{session}").status == 200
    assert client.heartbeat(session).status == 200
    he.revoke_tokens()
    assert client.setup(new).status == status
    assert client.setup(he.device_token()).status == 200


def test_revokedTokens_ofOneAccount_leaveOthers(headend: HeadEnd, client: Client) -> None:
    alice, bob = headend.content_token("alice"), headend.content_token("bob")
    headend.register_device("tv", "alice")
    device = headend.device_token(None, "tv")
    headend.revoke_tokens("alice")
    assert [client.setup(token).status for token in (alice, bob, device)] == [401, 200, 401]
    assert client.setup(headend.content_token("alice")).status == 200


@pytest.mark.parametrize(("setting", "status"), [(None, 400), (401, 401), (403, 403)])
def test_missingHeader_statusIsASetting(headend_factory: HeadEndFactory, setting: int | None, status: int) -> None:
    he = headend_factory(missing_token_status=setting)
    client = Client(he)
    for api in APIS:
        refused = ask(client, "fairplay", None, api=api)
        assert (refused.status, refused.code) == (status, 4001)
    assert (client.setup("").status, client.heartbeat(None).status) == (status, status)
    assert client.heartbeat(None).code == 1003
    assert ask(client, "fairplay", he.content_token()).status == 400


# The tests below check which contents a token grants.


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("key_system", ["clearkey", "fairplay"])
def test_token_ofOneContent_neverGetsTheKeysOfAnother(
    headend: HeadEnd, client: Client, key_system: KeySystem, api: Api
) -> None:
    headend.add_key(KID_A, KEY_A, "A")
    headend.add_key(KID_B, KEY_B, "B")
    for content_id, own, other in (("A", KID_A, KID_B), ("B", KID_B, KID_A)):
        token = headend.content_token("alice", content_id, max_sessions=9)
        sent = token if api == "v2" else f"{token},{client.setup(token).token}"

        def get(kid: bytes, tokens: str = sent) -> Answer:
            if key_system == "clearkey":
                return clear_keys(client, tokens, kid, api=api)
            return client.license("fairplay", tokens, fairplay.make_spc(str(uuid.UUID(bytes=kid))), api=api)

        before = len(headend.sessions)
        refused = get(other)
        assert (refused.code, refused.json["message"]) == (
            4000,
            f"key id {other.hex()} is of another content than the token",
        )
        assert len(headend.sessions) == before
        assert get(own).status == 200
    assert clear_keys(client, headend.content_token("alice", "A", max_sessions=9), KID_A, KID_B, api="v2").code == 4000


def test_renewal_getsTheKeysOfItsSessionsContentOnly(headend_factory: HeadEndFactory) -> None:
    he = headend_factory(enforced={"clearkey"})
    he.add_key(KID_A, KEY_A, "A")
    he.add_key(KID_B, KEY_B, "B")
    client = Client(he)
    token = clear_keys(client, he.content_token("alice", "A"), KID_A, api="v2").token
    assert clear_keys(client, token, KID_B, renew=True, api="v2").code == 4000
    assert keys_of(clear_keys(client, token, KID_A, renew=True, api="v2")) == {b64url(KID_A): b64url(KEY_A)}
    device = clear_keys(client, he.device_token("bob", "tv"), KID_B, api="v2").token
    both = clear_keys(client, device, KID_A, KID_B, renew=True, api="v2")
    assert len(keys_of(both)) == 2
    he.grant_rights("bob", "B")
    assert clear_keys(client, both.token, KID_A, KID_B, renew=True, api="v2").code == 4000
    assert clear_keys(client, both.token, KID_B, renew=True, api="v2").status == 200


def test_keyRotation_contentHasSeveralKeys_theNewestIsItsOwn(headend: HeadEnd, client: Client) -> None:
    headend.add_key(KID_A, KEY_A, "movie")
    token = headend.content_token("alice", "movie", max_sessions=9)

    def named(identifier: str | bytes) -> tuple[bytes, bytes]:
        spc = fairplay.make_spc(identifier)
        return fairplay.open_ckc(
            base64.b64decode(client.license("fairplay", token, spc, api="v2").json["CkcMessage"]), spc
        )

    assert named("movie") == (KID_A, KEY_A)
    headend.add_key(LATER_KID, LATER_KEY, "movie")
    assert named("movie") == (LATER_KID, LATER_KEY)
    assert named(fairplay.identifier("movie", KID_A, bytes(16))) == (KID_A, KEY_A)
    assert headend.keys.kids("movie") == (KID_A, LATER_KID)
    assert len(keys_of(clear_keys(client, token, KID_A, LATER_KID, api="v2"))) == 2
    only = headend.content_token("alice", "movie", kids=[LATER_KID], max_sessions=9)
    assert clear_keys(client, only, KID_A, api="v2").code == 4000
    assert clear_keys(client, only, LATER_KID, api="v2").status == 200


def test_keyOfNoContent_isForAny(headend: HeadEnd, client: Client) -> None:
    headend.add_key(KID_A, KEY_A)
    assert clear_keys(client, headend.content_token("alice", "whatever"), KID_A, api="v2").status == 200


def test_tokenKinds_overControl(headend: HeadEnd, client: Client) -> None:
    old = client.control("POST", "token", {"kind": "content-with-key", "keys": {KID_A.hex(): KEY_A.hex()}}).json[
        "token"
    ]
    assert clear_keys(client, old, KID_A, api="v2").status == 200
    assert client.control("POST", "revoke", {"account": "account-1"}).json == {}
    assert clear_keys(client, old, KID_A, api="v2").status == 401
    device = client.control("POST", "token", {"kind": "device", "account": "alice", "device": "tv"}).json["token"]
    client.control("POST", "device", {"device": "phone", "account": "alice"})
    assert client.setup(device).code == 3004
    client.control("POST", "device", {"device": "tv", "account": "alice"})
    client.control(
        "POST", "rights", {"account": "alice", "content_ids": ["A"], "max_sessions": 1, "session_control": True}
    )
    assert [client.setup(device).status for _ in range(2)] == [200, 400]
    client.control("POST", "device", {"device": "tv", "registered": False})
    assert client.setup(device).code == 3004
