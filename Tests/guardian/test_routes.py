"""The guardian reaches the server in the same way as its host: through a proxy, and with HTTP/2."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import headend
from killing import SYSTEMS, Host, Killing, guardians, wait_until

from stage.http2 import Http2Door
from usher.testing.doors import Proxy
from usher.testing.headend.fixtures import Authority


def die(killing: Killing, host: Host) -> None:
    """Kills the host. Waits until its sessions have ended, and then its guardian: until the guardian ends, it may wait
    for the reply to a teardown, so the door or proxy in front of the server must stay open."""
    process = host.guardian()
    host.kill()
    wait_done(killing, host, process)


def wait_done(killing: Killing, host: Host, process: int) -> None:
    killing.wait_free(host.account)
    wait_until(lambda: process not in guardians(), "the guardian runs")


def test_proxyOfTheHost_isTheGuardiansToo(secure: Killing) -> None:
    with Proxy() as proxy, secure.playing(proxy=proxy.address) as host:
        before = proxy.connections
        assert before > 0
        die(secure, host)
        assert proxy.connections == before + 1


def test_proxyThatRefuses_keepsTheSlotTaken_untilItLetsTheGuardianThrough(secure: Killing) -> None:
    """The guardian never goes around the proxy of its host."""
    with Proxy() as proxy, secure.playing(proxy=proxy.address) as host:
        process = host.guardian()
        before = proxy.connections
        proxy.denied.add(secure.headend.port)
        host.kill()
        wait_until(lambda: proxy.connections > before, "the guardian does not ask the proxy")
        assert secure.held(host.account) == 1
        proxy.denied.clear()
        wait_done(secure, host, process)


@pytest.mark.parametrize("way", list(SYSTEMS))
def test_serverWithHTTP2Only_getsTheTeardown(program: Path, way: str) -> None:
    authority = Authority("127.0.0.1")
    with headend() as made, Http2Door(made.url, tls=authority.server_context()) as door:
        killing = Killing(made, program, door)
        with killing.playing(way, ca_file=authority.ca_file, http2=1) as host:
            assert killing.held(host.account) == 1
            die(killing, host)


def test_sessionsOfAServerWithHTTP2_shareAConnection(program: Path) -> None:
    authority = Authority("127.0.0.1")
    with headend() as made, Http2Door(made.url, tls=authority.server_context()) as door:
        killing = Killing(made, program, door)
        with killing.playing(sessions=50, ca_file=authority.ca_file, http2=1) as host:
            assert killing.held(host.account) == 50
            before = door.connections
            die(killing, host)
        assert door.connections == before + 1
