"""Tests which connections and requests reach the server in each state of a door."""

from __future__ import annotations

import socket
import ssl
import warnings
from collections.abc import Iterator

import pytest
from headend_client import AUTH

from usher.testing.doors import Door, State
from usher.testing.headend import HeadEnd
from usher.testing.headend.fixtures import Authority


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("localhost")


@pytest.fixture
def door(headend: HeadEnd) -> Iterator[Door]:
    with Door(headend.url) as made:
        yield made


def set_up(stream: socket.socket, headend: HeadEnd) -> bytes:
    tokens = f"{AUTH}: {headend.content_token()}"
    head = f"POST /TENANT1/ssm/v1/sessions/setup HTTP/1.1\r\nHost: x\r\n{tokens}\r\nContent-Length: 0\r\n\r\n"
    stream.sendall(head.encode())
    return stream.recv(65_536)


def connect(door: Door) -> socket.socket:
    return socket.create_connection(("127.0.0.1", door.port), timeout=5)


def test_openDoor_letsThrough(headend: HeadEnd, door: Door) -> None:
    with connect(door) as stream:
        assert b"200 OK" in set_up(stream, headend)
        assert b"200 OK" in set_up(stream, headend)
    assert headend.journal.routes() == ["setup", "setup"]
    assert door.url(headend.ssm_url) == f"http://127.0.0.1:{door.port}/TENANT1/ssm"
    assert door.connections == 1


def test_refusingDoor_resetsAndRefuses_untilItOpens(headend: HeadEnd, door: Door) -> None:
    port = door.port
    with connect(door) as stream:
        set_up(stream, headend)
        door.set(State.REFUSING)
        with pytest.raises(ConnectionResetError):
            stream.recv(1)
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            connect(door)
    door.set(State.REFUSING)
    door.set(State.OPEN)
    assert door.port == port
    with connect(door) as stream:
        assert b"200 OK" in set_up(stream, headend)


def test_muteDoor_takesAndSaysNothing(headend: HeadEnd, door: Door) -> None:
    with connect(door) as old, connect(door) as silent:
        set_up(old, headend)
        door.set(State.MUTE)
        for stream in (old, silent, new := connect(door)):
            stream.sendall(b"POST / HTTP/1.1\r\n\r\n")
        door.wait_held(3)
        old.setblocking(False)
        with pytest.raises(BlockingIOError):
            old.recv(1)
        new.close()
        door.wait_held(2)
        door.set(State.OPEN)
        old.setblocking(True)
        assert not received(old) and not received(silent)
    assert headend.journal.routes() == ["setup"]


def received(stream: socket.socket) -> bytes:
    try:
        return stream.recv(1)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize(("kind", "word"), [("expired", "expired"), ("wrong_name", "mismatch"), ("server_context", "")])
def test_tlsDoor_showsItsCertificate(headend: HeadEnd, authority: Authority, kind: str, word: str) -> None:
    client = ssl.create_default_context(cafile=str(authority.ca_file))
    with Door(headend.url, tls=getattr(authority, kind)()) as door, connect(door) as raw:
        assert door.url(headend.url).startswith("https://127.0.0.1:")
        if word:
            with pytest.raises(ssl.SSLCertVerificationError, match=word):
                client.wrap_socket(raw, server_hostname="127.0.0.1")
        else:
            with client.wrap_socket(raw, server_hostname="127.0.0.1") as stream:
                assert b"200 OK" in set_up(stream, headend)


def test_oldTLS_isServedToWhoWantsIt(headend: HeadEnd, authority: Authority) -> None:
    client = ssl.create_default_context(cafile=str(authority.ca_file))
    with Door(headend.url, tls=authority.old_tls()) as door:
        with connect(door) as raw, pytest.raises(ssl.SSLError):
            client.wrap_socket(raw, server_hostname="127.0.0.1")
        assert door.connections == 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            client.minimum_version = ssl.TLSVersion.TLSv1
        client.set_ciphers("ALL:@SECLEVEL=0")
        with connect(door) as raw, client.wrap_socket(raw, server_hostname="127.0.0.1") as stream:
            assert stream.version() == "TLSv1"
            assert b"200 OK" in set_up(stream, headend)
