"""The process of a host with https servers ends while the library works. The process ends with the host's exit code. If
the host closes a session in an exit handler, the server no longer holds this session."""

from __future__ import annotations

import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from stage.raw import RawServer, reply

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
C_FLAGS = ["-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1"]
CXX_FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1"]
CA = trustme.CA()
SESSION = reply(b'{"sessionToken":"session-token","heartbeat":0.03}')
"""The server closes the connection after each reply, so each heartbeat needs a new TLS handshake."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hosts")
    library = Path(os.environ["USHER_LIBRARY"]).resolve()
    linked = [str(library), f"-Wl,-rpath,{library.parent},--allow-shlib-undefined", "-ldl"]
    for command in (["cc", *C_FLAGS, str(HERE / "ends.c")], ["c++", *CXX_FLAGS, str(HERE / "ends.cpp")]):
        program = folder / ("ends" if command[0] == "cc" else "ends_cpp")
        subprocess.run([*command, f"-I{INCLUDE}", *linked, "-o", str(program)], check=True, timeout=120)
    CA.cert_pem.write_to_path(str(folder / "ca.pem"))
    return folder


@pytest.fixture
def server() -> Iterator[RawServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA.issue_cert("127.0.0.1").configure_cert(context)
    with RawServer(SESSION, tls=context) as made:
        yield made


def run(*command: str) -> tuple[int, str]:
    """Returns the exit code and the output of a host. Fails if it does not end in 30 s."""
    environment = {**os.environ, "SWIFT_BACKTRACE": "enable=no"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    return ended.returncode, ended.stdout


def teardowns(server: RawServer) -> int:
    return sum(b"/teardown" in request.split(b"\r\n")[0] for request in server.requests)


@pytest.mark.parametrize("wiping", ["", "+wiping"])
def test_exitHandlerOfTheHost_closesTheContext_theSessionIsTornDown(
    hosts: Path, server: RawServer, wiping: str
) -> None:
    """The host registers an exit handler before it makes a context. This handler closes the context while the process
    exits. The library can still open connections then, so the server gets the teardown."""
    told = run(str(hosts / "ends"), f"handler-frees{wiping}", server.url, str(hosts / "ca.pem"))
    assert told == (42, "close: USHER_OK\nfree: USHER_OK\n")
    assert teardowns(server) == 1


def test_globalContextInCPlusPlus_mainReturns_theSessionIsTornDown(hosts: Path, server: RawServer) -> None:
    """main() of a C++ host returns while a global context has a session. The destructors of the global objects close
    the context, and the server gets the teardown."""
    assert run(str(hosts / "ends_cpp"), server.url, str(hosts / "ca.pem")) == (42, "")
    assert teardowns(server) == 1


@pytest.mark.parametrize("way", ["returns", "callback-frees", "host-uses-openssl", "host-uses-openssl+callback-frees"])
def test_processWithASession_exits_itEndsWithTheHostsExitCode(hosts: Path, server: RawServer, way: str) -> None:
    """A host returns from main() while the I/O thread opens a connection for each heartbeat, or while a background
    thread ends the context. The process ends with the host's exit code, even if the host had initialised OpenSSL
    itself."""
    assert run(str(hosts / "ends"), way, server.url, str(hosts / "ca.pem")) == (42, "")


@pytest.mark.parametrize("way", ["host-uses-openssl+handler-frees", "ends-openssl"])
def test_contextWhoseOpenSSLHasEnded_isFreed_allRequestsFailAtOnce(hosts: Path, server: RawServer, way: str) -> None:
    """A host frees its context after OpenSSL has freed OpenSSL's memory. The library can send no more requests then, so
    the close ends at once, without the teardown."""
    begun = time.monotonic()
    told = run(str(hosts / "ends"), way, server.url, str(hosts / "ca.pem"))
    assert told == (42, "close: USHER_OK\nfree: USHER_OK\n")
    assert teardowns(server) == 0
    assert time.monotonic() - begun < 5
