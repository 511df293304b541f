"""TLS: authority, pinned key, client certificate, versions. The library sends nothing to a server that fails a
check."""

from __future__ import annotations

import base64
import hashlib
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from raw import RawServer, reply

import usher
from stage import Stage

SETUP = reply(b'{"sessionToken":"t","heartbeat":60}')
CA = trustme.CA()


def pin(certificate: trustme.LeafCert) -> str:
    """The digest of the public key, as libcurl expects it."""
    key = x509.load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes()).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    return "sha256//" + base64.b64encode(digest).decode()


class Server(RawServer):
    """A session manager over TLS. `client_of`: it accepts only clients with a certificate of this authority."""

    def __init__(
        self,
        certificate: trustme.LeafCert,
        *,
        client_of: trustme.CA | None = None,
        newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        context.maximum_version = newest
        if newest < ssl.TLSVersion.TLSv1_2:
            context.minimum_version = newest
            context.set_ciphers("ALL:@SECLEVEL=0")
        if client_of:
            client_of.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        super().__init__(SETUP, reply(b"{}"), tls=context)


@pytest.fixture
def ca_file(tmp_path: Path) -> Iterator[str]:
    with CA.cert_pem.tempfile(str(tmp_path)) as file:
        yield file


Setup = Callable[..., list[str]]


@pytest.fixture
def told(stage_factory: Callable[..., Stage], ca_file: str) -> Setup:
    """Sets a session up with a server and returns the types of the events."""

    def set_up(server: RawServer, **options: str) -> list[str]:
        stage = stage_factory(**{"ca_file": ca_file, **options})
        playback = stage.play(delegate=stage.delegate(ssm_url=server.url), tag="a")
        stage.settle()
        types = stage.events.types("a")
        if types == ["SETUP_ERROR"]:
            assert stage.events.error(usher.EventType.SETUP_ERROR, "a").status is usher.Status.TLS
            assert server.requests == []
        playback.close()
        stage.settle()
        return types

    return set_up


def test_server_ofTheAuthority_isTalkedTo(told: Setup) -> None:
    with Server(CA.issue_cert("127.0.0.1")) as server:
        assert told(server) == ["SESSION_STARTED"]


@pytest.mark.parametrize(
    "certificate",
    [trustme.CA().issue_cert("127.0.0.1"), CA.issue_cert("127.0.0.2"), CA.issue_cert("tenant.example.invalid")],
)
def test_server_ofAnotherAuthorityOrName_isSentNothing(told: Setup, certificate: trustme.LeafCert) -> None:
    with Server(certificate) as server:
        assert told(server) == ["SETUP_ERROR"]


def test_pinnedKey_itsServer_isTalkedTo(told: Setup) -> None:
    certificate = CA.issue_cert("127.0.0.1")
    with Server(certificate) as server:
        assert told(server, pinned_public_key=pin(certificate)) == ["SESSION_STARTED"]


def test_pinnedKey_anotherServerOfTheSameAuthority_isSentNothing(told: Setup) -> None:
    with Server(CA.issue_cert("127.0.0.1")) as server:
        assert told(server, pinned_public_key=pin(CA.issue_cert("127.0.0.1"))) == ["SETUP_ERROR"]


def test_clientCertificate_whereTheServerAsksForOne_isShown(told: Setup, tmp_path: Path) -> None:
    clients = trustme.CA()
    client = clients.issue_cert("player@example.invalid")
    chain, key = tmp_path / "client.pem", tmp_path / "client.key"
    client.cert_chain_pems[0].write_to_path(str(chain))
    client.private_key_pem.write_to_path(str(key))
    with Server(CA.issue_cert("127.0.0.1"), client_of=clients) as server:
        assert told(server, client_certificate_file=str(chain), client_key_file=str(key)) == ["SESSION_STARTED"]


OLD_OPENSSL = """openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = default
[default]
MinProtocol = TLSv1
CipherString = ALL:@SECLEVEL=0
"""
SCRIPT = """
import sys, usher
url, ca_file = sys.argv[1:]
with usher.Context(ca_file=ca_file, proxy="") as context, usher.Player(context) as player:
    with player.play("token", delegate=usher.SSPDelegate(context, license_url=url, ssm_url=url)) as playback:
        try:
            playback.wait_session()
            print("OK")
        except usher.UsherError as error:
            print(error.status.name)
"""


@pytest.mark.parametrize(
    ("newest", "wanted"), [(ssl.TLSVersion.TLSv1_1, "TLS"), (ssl.TLSVersion.TLSv1_2, "OK")], ids=["1.1", "1.2"]
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_server_withoutTls12_isSentNothing_alsoWhereOpenSSLWouldDo(
    ca_file: str, tmp_path: Path, newest: ssl.TLSVersion, wanted: str
) -> None:
    """The library sends nothing to a server below TLS 1.2, although this host's OpenSSL accepts every version."""
    settings = tmp_path / "openssl.cnf"
    settings.write_text(OLD_OPENSSL, encoding="ascii")
    environment = {**os.environ, "OPENSSL_CONF": str(settings), "PYTHONPATH": str(Path(usher.__file__).parents[1])}
    with Server(CA.issue_cert("127.0.0.1"), newest=newest) as server:
        command = [sys.executable, "-c", SCRIPT, server.url, ca_file]
        host = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        assert host.stdout.split() == [wanted]
        assert bool(server.requests) == (wanted == "OK")
