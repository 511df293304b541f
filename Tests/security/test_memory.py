"""A host frees everything, and then the test searches the memory of the host; it contains no token, licence, payload or
header."""

from __future__ import annotations

import base64
import os
import secrets
import ssl
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from memory import longest_runs, search

import usher
from stage.raw import RawServer, reply
from usher.testing.headend import Fault, HeadEnd, ckc

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
C_FLAGS = ["-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"]
KINDS = pytest.mark.parametrize("enforced", [False, True], ids=["heartbeats", "renewals"])
TLS = pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])


class Hosts:
    """The host programs. They play in separate processes, whose memory the test then searches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        library = Path(os.environ["USHER_LIBRARY"]).resolve()
        linked = [str(library), f"-Wl,-rpath,{library.parent},--allow-shlib-undefined"]
        for name in ("host", "host_delegates"):
            subprocess.run(
                ["cc", *C_FLAGS, f"-I{INCLUDE}", str(HERE / f"{name}.c"), *linked, "-o", str(folder / name)],
                check=True,
                timeout=60,
            )
        subprocess.run(
            ["cc", *C_FLAGS, "-shared", "-fPIC", str(HERE / "wiping.c"), "-ldl", "-o", str(folder / "wiping.so")],
            check=True,
            timeout=60,
        )

    def left(
        self,
        words: Sequence[str],
        secret: Callable[[], Mapping[str, bytes]],
        *manner: str,
        host: str = "host",
        goes_well: bool = True,
        binds_late: bool = False,
        look: Callable[[int, Mapping[str, bytes]], Counter[str]] = search,
    ) -> Counter[str]:
        """Runs a host with the input lines ``words``. Then searches the memory of the host for the secrets with the
        function ``look``, and returns the result of this function. The default, ``search``, counts the parts of each
        secret."""
        # LD_BIND_NOW makes the dynamic loader bind all symbols of all libraries at the start. If the loader binds a
        # symbol later, it saves registers on the stack, and these may contain parts of secrets.
        environment = {**os.environ, **({} if binds_late else {"LD_BIND_NOW": "1"})}
        if not {"wiping", "plain"} & set(manner):
            environment["LD_PRELOAD"] = str(self.folder / "wiping.so")
        child = subprocess.Popen(
            [self.folder / host, *manner], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert child.stdin is not None and child.stdout is not None
        with child:
            child.stdin.write("\n".join([*words, "end", ""]).encode())
            child.stdin.flush()
            said = child.stdout.readline()
            while not said.endswith((b"over\n", b"wrong\n")):
                said += child.stdout.readline() or b"wrong\n"
            try:
                assert said == b"over\n" or not goes_well, said.decode()
                return look(child.pid, secret())
            finally:
                child.stdin.close()
                assert child.wait(20) == (said != b"over\n")

    def left_of_session(
        self,
        headend: HeadEnd,
        *manner: str,
        goes_well: bool = True,
        more: Mapping[str, bytes] | None = None,
        scale: int = 1,
        **how: Any,
    ) -> Counter[str]:
        """Plays a session with new secrets. Then searches the memory of the process for each secret, as ``left`` does,
        and returns the same kind of result."""
        token, payload, key = (
            headend.content_token(marker=secrets.token_hex(32 * scale)),
            secrets.token_hex(64 * scale),
            secrets.token_hex(32 * scale),
        )
        words = [
            headend.license_url("fairplay"),
            headend.ssm_url,
            str(headend.ca_file or ""),
            f"x-api-key: {key}",
            token,
            payload,
        ]
        return self.left(
            words,
            lambda: {**wanted(headend, token, payload), "header": key.encode(), **(more or {})},
            *manner,
            goes_well=goes_well,
            **how,
        )


@pytest.fixture(scope="module")
def hosts(lib: Any, tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    return Hosts(tmp_path_factory.mktemp("hosts"))


def head_end(enforced: bool = False, tls: bool = False, token_form: str = "jwt") -> HeadEnd:
    return HeadEnd(
        clock="manual",
        token_form=token_form,
        token_rotation="strict",
        grace=100,
        enforced=frozenset({"fairplay"} if enforced else ()),
        tls=tls,
    )


def wanted(headend: HeadEnd, token: str, payload: str) -> dict[str, bytes]:
    """Returns the secrets of the session, from the head-end's journal: payload, content token, licence, and the session
    tokens that the library sent."""
    sent = {part for entry in headend.journal for part in (entry.header("nv-authorizations") or "").split(",")} - {
        token,
        "",
    }
    assert sent, headend.journal.dump()
    licence = ckc(payload.encode())
    found = {f"session token {number}": text.encode() for number, text in enumerate(sorted(sent))}
    return {
        **found,
        "content token": token.encode(),
        "payload": payload.encode(),
        "licence": licence,
        "licence in base64": base64.b64encode(licence),
    }


@TLS
@KINDS
def test_memory_afterTheEnd_holdsNoSecret(hosts: Hosts, enforced: bool, tls: bool, token_form: str) -> None:
    with head_end(enforced, tls, token_form) as headend:
        assert not +hosts.left_of_session(headend)
        assert len(headend.journal.entries(route="license" if enforced else "heartbeat")) >= 3, headend.journal.dump()


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_memory_afterSecretsOfManyPages_holdsNone(hosts: Hosts, tls: bool) -> None:
    """A session has a content token, a payload and a header of 6 kB to 12 kB. After the host has freed everything, its
    memory has no part of them."""
    with head_end(tls=tls) as headend:
        assert not +hosts.left_of_session(headend, scale=100)
        token = headend.journal.last(route="setup").parts[0].raw
        assert len(token) > 8000 and headend.journal.entries(route="heartbeat"), headend.journal.dump()


@TLS
def test_memory_afterTheEnd_ofAHostThatSetsWipeFreedMemory_holdsNoSecret(
    hosts: Hosts, tls: bool, token_form: str
) -> None:
    """libcurl and OpenSSL wipe the memory that they free when the host sets `wipe_freed_memory`; the process has no
    secret in its memory."""
    with head_end(tls=tls, token_form=token_form) as headend:
        assert not +hosts.left_of_session(headend, "wiping")


@TLS
def test_memory_ofAHostThatBindsLate_holdsAtMost65BytesOfASecret(hosts: Hosts, tls: bool) -> None:
    """The host runs without LD_BIND_NOW. When the dynamic loader binds a function, it saves registers on the stack of
    the calling thread; at most 65 bytes of each secret stay there."""
    with head_end(tls=tls) as headend:
        found = hosts.left_of_session(headend, binds_late=True, look=longest_runs)
    if any(size > 65 for size in found.values()):
        # The bytes beside a saved register may continue the secret by chance. With other secrets they do not.
        with head_end(tls=tls) as headend:
            found &= hosts.left_of_session(headend, binds_late=True, look=longest_runs)
    assert all(size <= 65 for size in found.values()), found


def test_wipeFreedMemory_whereOpenSSLWasUsedBefore_isRefused(lib: Any) -> None:
    """The library refuses `wipe_freed_memory` when the process has already used OpenSSL; contexts without this option
    work."""
    ssl.create_default_context()
    with pytest.raises(usher.StateError):
        usher.Context(wipe_freed_memory=True)
    usher.Context().close()


def test_memory_afterTheEnd_ofAnyOtherHost_holdsSecretsOfOtherLibraries_soThatTheSearchFinds(hosts: Hosts) -> None:
    """libcurl and OpenSSL leave secrets in memory when the host does not set `wipe_freed_memory`."""
    with head_end(tls=True) as headend:
        assert +hosts.left_of_session(headend, "plain")


BROKEN = {
    "breaks off": '{{"errorCode": 1003, "sent": ["{0}", {{"a": "{0}", "deeper": [{{"b": "{0}"}}, "{0}',
    "is no JSON": '{{"sent": ["{0}", {{"a": "{0}"}}], no}}',
    "has more after it": '{{"sent": "{0}"}} {{"sent": "{0}"}}',
    "is an error": '{{"errorCode": 1003, "message": "{0} is not known", "sent": "{0}"}}',
    "has a longer text after it": '{{"errorCode": 1003, "sent": "{0}", "more": "' + "x" * 5000 + '"}}',
    "is in pieces": '{{"errorCode": 1003, "sent": "{0}\\n{0}\\n{0}\\n{0}"}}',
    "is a text": "the token {0} is not known",
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("route", ["license", "heartbeat"])
def test_memory_afterAReplyThatIsNoAnswer_holdsNoSecret(hosts: Hosts, route: str, broken: str, token_form: str) -> None:
    secret = secrets.token_hex(500)
    with head_end(token_form=token_form) as headend:
        for status in (200, 400):
            body = BROKEN[broken].format(secret)
            headend.faults.add(
                route,
                Fault.reply(status, body=body, content_type="application/json", headers={"x-sent": secret[:600]}),
                always=status == 400,
            )
        assert not +hosts.left_of_session(headend, goes_well=False, more={"what the server said": secret.encode()})
        assert headend.journal.entries(route=route), headend.journal.dump()


def test_memory_afterHooksMapsOwnServersAndLoaders_holdsNoSecret(hosts: Hosts) -> None:
    """No secret stays in memory after a host has got licences with hooks, a token map, customer SSM and a resource
    loader.

    The server gives the same reply to every request: JSON with a CKC.
    """
    texts = {
        name: secrets.token_hex(size)
        for name, size in {"header": 32, "token": 300, "payload": 200, "licence": 200, "cookie": 16}.items()
    }
    ckc = secrets.token_bytes(300)
    inside = base64.b64encode(ckc)
    with RawServer(reply(b'{"CkcMessage":"%s","ckc":"%s"}' % (inside, inside))) as server:
        words = [
            server.url,
            f"X-Api-Key: {texts['header']}",
            *(texts[name] for name in ("token", "payload", "licence", "cookie")),
        ]
        secret = {
            **{name: text.encode() for name, text in texts.items() if name != "cookie"},
            "CKC": ckc,
            "CKC in base64": inside,
            "payload in base64": in_base64(texts["payload"]),
        }
        assert not +hosts.left(words, lambda: secret, host="host_delegates")
        assert [texts["header"].encode() in request for request in server.requests] == [True, True, True], (
            "hooks, map and loader"
        )


def in_base64(text: str) -> bytes:
    return base64.b64encode(text.encode())


def test_memory_whilePlaying_holdsTheNewestToken_soThatTheSearchFinds(hosts: Hosts, token_form: str) -> None:
    with head_end(token_form=token_form) as headend:
        found = hosts.left_of_session(headend, "held")
    assert any(count > 0 for name, count in found.items() if name.startswith("session token"))
    assert found["licence"] == 0 and found["payload"] == 0
