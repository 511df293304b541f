"""The head-end shows no whole token of a request: its journal, its page, its log and its replies contain only short
names."""

from __future__ import annotations

import base64
import json
import logging
import socket

import pytest
from headend_client import Client, raw

from pytest_usher import HeadEndFactory
from usher.testing.headend import Fault, HeadEnd, HeadEndConfig
from usher.testing.headend.knobs import Fps, Sees
from usher.testing.headend.oracle.feed import request_row
from usher.testing.headend.overrides import apply


@pytest.mark.parametrize("form", ["jwt", "uuid", "letters", "digits"])
def test_token_inAnyPlaceOfARequest_isShortened(headend_factory: HeadEndFactory, form: str) -> None:
    """A client sends a session token in unusual headers, in the query, in the path and in the body, and the head-end
    repeats it in a message. The journal as text, the control endpoints, the page and repr() show only the start of the
    token."""
    headend = headend_factory(token_form=form)
    client = Client(headend)
    token = client.setup(headend.content_token("alice")).token
    beat = f"{headend.ssm_url}/v1/sessions/heartbeat"
    for name in ("x-token", "Proxy-Authorization", "X-Auth-Token", "Authorization"):
        client.send("POST", beat, headers={name: f"Bearer {token}"})
    client.send("POST", beat, headers={"nv-authorizations": token, "x-upper": token.upper()})
    for query in (f"?token={token}", f"?apikey={token}", f"?nv-authorizations={token}"):
        client.send("POST", beat + query)
    client.send("POST", f"{headend.url}/{token}/x")
    body = json.dumps({"sessionToken": token}).encode()
    client.send("POST", beat, headers={"nv-authorizations": token}, body=body)
    headend.faults.add("heartbeat", Fault.error(1006, message=f"unknown {token}"))
    client.heartbeat(token)
    headend.faults.add("heartbeat", Fault.header("x-t", token))
    client.heartbeat(token)
    shown = client.control("GET", "journal").json
    bodies = [base64.b64decode(entry["body_base64"]).decode() for entry in shown["entries"]]
    rows = [request_row(entry) for entry in headend.journal]
    texts = [headend.journal.dump(), *map(repr, headend.journal), *map(str, headend.journal), *bodies]
    for text in (json.dumps(shown), json.dumps(rows), *texts):
        assert token.lower() not in text.lower()
    assert "unknown POST /" in headend.journal.dump()


def test_expressPlayToken_codedInAnyWay_isShortened(headend: HeadEnd, client: Client) -> None:
    """A client percent-codes an ExpressPlay token in different ways; the journal of the control endpoints does not show
    the token."""
    for coded in ("aB%2B%2F%3DcDeFg12345678", "ab%2b%2f%3dcdefg12345678", "%61B+/=cDeFg12345678"):
        client.send("POST", f"{headend.rights_url}?ExpressPlayToken={coded}")
    said = json.dumps(client.control("GET", "journal").json).lower()
    assert "cdefg12345678" not in said


def test_forgedToken_withLineEnds_leavesTheTableWhole(headend: HeadEnd, client: Client) -> None:
    """A client forges a token whose claims contain line ends, ESC and U+202E; each journal entry is still one line of
    visible characters."""
    evil = "eve\n9  setup\x1b[31m\u202e\u2028"
    parts = [{"alg": "HS256"}, {"typ": "ContentAuthZ", "jti": "\x1b[2\nJ", "device": {"accountId": evil}}]
    token = ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + ".AAAA"
    client.setup(token)
    for text in (*headend.journal.dump().split("\n"), str(headend.journal[-1]), repr(headend.journal[-1])):
        assert text.isprintable() and len(headend.journal.dump().split("\n")) == 2, text


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /x HTTP/1.1\r\nHost: x\r\nnv-authorizations: S3CRETTOKEN\x01\r\n\r\n",
        b"POST /x HTTP/1.1\r\nnv authorizations S3CRETTOKEN\r\n\r\n",
        b"POST /x y?ExpressPlayToken=S3CRETTOKEN HTTP/1.1\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: S3CRETTOKEN\r\n\r\n",
    ],
)
def test_malformedRequest_isNotRepeated(headend: HeadEnd, caplog: pytest.LogCaptureFixture, request_: bytes) -> None:
    """A client sends a malformed request with a token; neither the reply nor the log contains the token."""
    caplog.set_level(logging.DEBUG)
    with socket.create_connection(("127.0.0.1", headend.port), timeout=10) as connection:
        connection.sendall(request_)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
    assert b"S3CRET" not in answer and "S3CRET" not in caplog.text and "cannot be read" in caplog.text


def test_settings_withCredentials_areNotInReprOrErrors() -> None:
    """repr() of the settings and the errors of `--set` show no credential."""
    secret = "S3cret"
    config = HeadEndConfig(control_token=secret, fps=Fps(authorization=secret), sees=Sees(authorization=secret))
    assert secret not in repr(config)
    for name in ("control_token", "fps.authorization"):
        with pytest.raises(ValueError) as refused:
            apply(HeadEndConfig(), [f"{name}=12345678"])
        assert "12345678" not in str(refused.value)


def test_controlToken_withABadByte_isRefused(headend_factory: HeadEndFactory) -> None:
    """A client sends a control token with the byte 0xFF; the head-end answers 401."""
    headend = headend_factory(control_token="S3cretControl")
    head = "GET /_control/state HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer "
    answer = raw(headend, head.encode() + b"\xff\r\n\r\n")
    assert b" 401 " in answer.split(b"\r\n")[0]
