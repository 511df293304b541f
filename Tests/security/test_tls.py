"""Tests TLS: authorities, pinned keys, client certificates and versions. If a server fails a check, the library sends
nothing to it."""

from __future__ import annotations

import base64
import datetime
import hashlib
import os
import pty
import select
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

import usher
from stage import Stage
from stage.raw import RawServer, reply

SETUP = reply(b'{"sessionToken":"t","heartbeat":60}')
CA = trustme.CA()


def pin(certificate: trustme.LeafCert) -> str:
    """Returns the digest of the public key in the form that libcurl expects."""
    key = x509.load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes()).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    return "sha256//" + base64.b64encode(digest).decode()


class Server(RawServer):
    """A session manager over TLS. If `client_of` is set, it accepts only clients with a certificate of this
    authority."""

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

    def _answer(self, client: socket.socket) -> None:
        """If the handshake fails, the server reads until the client closes. Otherwise a reset could arrive at the
        client before the server's alert."""
        assert self._tls
        with self._tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False) as connection:
            try:
                connection.do_handshake()
            except ssl.SSLError:
                with socket.socket(fileno=os.dup(connection.fileno())) as plain:
                    while plain.recv(4096):
                        pass
                return
            self._read_and_answer(connection)


@pytest.fixture
def ca_file(tmp_path: Path) -> Iterator[str]:
    with CA.cert_pem.tempfile(str(tmp_path)) as file:
        yield file


Setup = Callable[..., list[str]]


@pytest.fixture
def told(stage_factory: Callable[..., Stage], ca_file: str) -> Setup:
    """Returns a function that sets up a session at a server, closes the playback, and returns the types of the events
    before the close."""

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


NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


@pytest.mark.parametrize(
    ("certificate", "fault", "words"),
    [
        (lambda: trustme.CA().issue_cert("127.0.0.1"), "AUTHORITY", "is not from a trusted authority"),
        (lambda: CA.issue_cert("127.0.0.1", not_after=NOW - DAY), "EXPIRED", "has expired"),
        (
            lambda: CA.issue_cert("127.0.0.1", not_before=NOW + DAY, not_after=NOW + 2 * DAY),
            "NOT_YET_VALID",
            "is not valid yet",
        ),
        (lambda: CA.issue_cert("127.0.0.2"), "NAME", "for another host name"),
        (lambda: CA.issue_cert("tenant.example.invalid"), "NAME", "for another host name"),
    ],
    ids=["authority", "expired", "not yet valid", "other address", "other name"],
)
def test_tlsError_ofACertificate_namesItsFault(
    stage_factory: Callable[..., Stage],
    ca_file: str,
    certificate: Callable[[], trustme.LeafCert],
    fault: str,
    words: str,
) -> None:
    """A server shows a certificate that the library does not accept; the error names the fault, and its explanation
    differs from that of a TLS error without a known reason."""
    with Server(certificate()) as server:
        error = setup_error(stage_factory(ca_file=ca_file), server)
    assert (error.status, error.tls_fault.name, server.requests) == (usher.Status.TLS, fault, [])
    assert words in error.message
    assert error.explain() != usher.explain(0, error.origin, status=error.status)


def test_tlsError_ofAPinnedKey_namesItsFault(stage_factory: Callable[..., Stage], ca_file: str) -> None:
    with Server(CA.issue_cert("127.0.0.1")) as server:
        stage = stage_factory(ca_file=ca_file, pinned_public_key=pin(CA.issue_cert("127.0.0.1")))
        error = setup_error(stage, server)
    assert (error.tls_fault, "pinned" in error.message) == (usher.TLSFault.PIN, True)


def test_tlsError_withoutACertificateFault_hasNone(stage_factory: Callable[..., Stage], ca_file: str) -> None:
    with Server(CA.issue_cert("127.0.0.1"), newest=ssl.TLSVersion.TLSv1) as server:
        error = setup_error(stage_factory(ca_file=ca_file), server)
    assert (error.status, error.tls_fault) == (usher.Status.TLS, usher.TLSFault.NONE)


def setup_error(stage: Stage, server: RawServer) -> usher.UsherError:
    stage.play(delegate=stage.delegate(ssm_url=server.url), tag="a")
    stage.settle()
    return stage.events.error(usher.EventType.SETUP_ERROR, "a")


def demanding_stapling() -> trustme.LeafCert:
    """Returns a certificate that demands OCSP stapling ("must-staple", RFC 7633)."""
    plain = CA.issue_cert("127.0.0.1")
    certificate = x509.load_pem_x509_certificate(plain.cert_chain_pems[0].bytes())
    builder = (
        x509.CertificateBuilder()
        .issuer_name(certificate.issuer)
        .subject_name(certificate.subject)
        .public_key(certificate.public_key())
        .serial_number(certificate.serial_number)
        .not_valid_before(certificate.not_valid_before_utc)
        .not_valid_after(certificate.not_valid_after_utc)
        .add_extension(x509.TLSFeature([x509.TLSFeatureType.status_request]), critical=False)
    )
    for extension in certificate.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    authority_key = load_pem_private_key(CA.private_key_pem.bytes(), None)
    assert isinstance(authority_key, EllipticCurvePrivateKey)
    signed = builder.sign(authority_key, SHA256())
    return trustme.LeafCert(plain.private_key_pem.bytes(), signed.public_bytes(Encoding.PEM), [])


def test_certificateThatDemandsStapling_serverWithoutStaple_isTalkedTo(told: Setup) -> None:
    """The server's certificate demands OCSP stapling, and the server sends no OCSP reply; the library accepts it."""
    with Server(demanding_stapling()) as server:
        assert told(server) == ["SESSION_STARTED"]


def test_caFile_authorityOfTheSystemsFolder_isNotTrusted(ca_file: str, tmp_path: Path) -> None:
    """The library sends nothing to a server whose authority is in the system's folder, but not in `ca_file`."""
    other = trustme.CA()
    folder = tmp_path / "certs"
    folder.mkdir()
    other.cert_pem.write_to_path(str(folder / "other.pem"))
    trustme.CA().cert_pem.write_to_path(str(folder / "ca-certificates.crt"))
    subprocess.run(["openssl", "rehash", str(folder)], check=True, timeout=30)
    assert list(folder.glob("*.0"))
    with Server(other.issue_cert("127.0.0.1")) as server:
        assert in_a_namespace(folder, server.url, ca_file) == "TLS"
        assert server.requests == []
        other.cert_pem.write_to_path(str(folder / "ca-certificates.crt"), append=True)
        assert in_a_namespace(folder, server.url, "") == "OK"


def test_system_hasAFileOfAuthorities_onlyItIsRead_once(tmp_path: Path) -> None:
    """The library reads the authorities from the system's file, not from the folder beside this file. It parses the
    file only once for all connections, because parsing takes so long that heartbeats to other servers would be late."""
    folder = tmp_path / "certs"
    folder.mkdir()
    CA.cert_pem.write_to_path(str(folder / "ca-certificates.crt"))
    with Server(CA.issue_cert("127.0.0.1")) as server:
        assert in_a_namespace(folder, server.url, "", MANY) == f"{CONNECTIONS} connections, the file opened once"
        assert len(server.requests) == CONNECTIONS


CONNECTIONS = 5
MANY = f"""
import contextlib, ctypes, os, sys
import usher

libc = ctypes.CDLL(None)
notes = libc.inotify_init1(os.O_NONBLOCK)
libc.inotify_add_watch(notes, b"/etc/ssl/certs/ca-certificates.crt", 0x30)  # IN_OPEN, IN_CLOSE_NOWRITE
with usher.Context(proxy="") as context:
    delegate = usher.SSPDelegate(context, license_url=sys.argv[1], ssm_url=sys.argv[1])
    for _ in range({CONNECTIONS}):
        playback = usher.Player(context).play("token", delegate=delegate)
        with contextlib.suppress(usher.ProtocolError):  # the server has one session only
            playback.wait_session()
        playback.close(usher.CloseMode.LEAVE)
opened = len(os.read(notes, 65536)) // 32
print({CONNECTIONS}, "connections, the file opened", "once" if opened == 1 else f"{{opened}} times")
"""


class Hello:
    """The cipher suites and groups that a ClientHello offers (RFC 8446, 4.1.2)."""

    def __init__(self, record: bytes) -> None:
        at = 5 + 4 + 2 + 32  # the headers of record and message, version, random
        at += 1 + record[at]
        size = int.from_bytes(record[at : at + 2], "big")
        self.ciphers = {int.from_bytes(record[i : i + 2], "big") for i in range(at + 2, at + 2 + size, 2)}
        at += 2 + size
        at += 1 + record[at]
        at += 2
        self.groups: set[int] = set()
        while at + 4 <= len(record):
            kind, size = (int.from_bytes(record[i : i + 2], "big") for i in (at, at + 2))
            if kind == 10:
                self.groups = {int.from_bytes(record[i : i + 2], "big") for i in range(at + 6, at + 4 + size, 2)}
            at += 4 + size


def test_library_offersNoKeyExchangeWhoseSizeTheServerChooses(ca_file: str) -> None:
    """The library offers no Diffie-Hellman over prime fields: large primes would keep the I/O thread busy, and
    heartbeats to other servers would be late."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        with subprocess.Popen([sys.executable, "-c", SCRIPT, url, ca_file], env=environment()) as host:
            client, _ = listener.accept()
            with client:
                hello = Hello(client.recv(65536))
            host.wait(60)
    assert 0x1301 in hello.ciphers or 0x1302 in hello.ciphers, "TLS 1.3"
    assert 0xC030 in hello.ciphers, "ECDHE-RSA-AES256-GCM-SHA384"
    assert not hello.ciphers & DHE
    assert 0x001D in hello.groups, "X25519"
    assert not {group for group in hello.groups if 0x0100 <= group < 0x0200}, "ffdhe2048 to ffdhe8192"


DHE = {0x0033, 0x0039, 0x0045, 0x0067, 0x006B, 0x0088, 0x009A, 0x009E, 0x009F, 0xC052, 0xC053, 0xC09E, 0xC09F}
DHE |= {0x00C4, 0x00BE, 0xC07C, 0xC07D, 0xCCAA}
"""The cipher suites of TLS 1.2 that use Diffie-Hellman over prime fields with RSA certificates."""


def in_a_namespace(folder: Path, url: str, ca_file: str, script: str | None = None) -> str:
    """Runs SCRIPT with `folder` as the system's folder of authorities. Returns the output of the script."""
    mount = f"mount --bind '{folder}' /etc/ssl/certs && exec \"$@\""
    command = ["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", script or SCRIPT, url, ca_file]
    host = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert host.returncode == 0, host.stderr
    return host.stdout.strip()


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more, "PYTHONPATH": str(Path(usher.__file__).parents[1])}


def test_keyLog_ofTheEnvironment_staysEmpty(ca_file: str, tmp_path: Path) -> None:
    """When SSLKEYLOGFILE names a file, the library writes no TLS keys into it, and the session plays."""
    log = tmp_path / "keys"
    with Server(CA.issue_cert("127.0.0.1")) as server:
        command = [sys.executable, "-c", SCRIPT, server.url, ca_file]
        host = subprocess.run(
            command, env=environment(SSLKEYLOGFILE=str(log)), capture_output=True, text=True, timeout=60, check=True
        )
    assert host.stdout.split() == ["OK"]
    assert not log.exists() or "SECRET" not in log.read_text(), "keys of this library's connections are in the file"


def test_pinnedKey_itsServer_isTalkedTo(told: Setup) -> None:
    certificate = CA.issue_cert("127.0.0.1")
    with Server(certificate) as server:
        assert told(server, pinned_public_key=pin(certificate)) == ["SESSION_STARTED"]


def test_pinnedKey_anotherServerOfTheSameAuthority_isSentNothing(told: Setup) -> None:
    with Server(CA.issue_cert("127.0.0.1")) as server:
        assert told(server, pinned_public_key=pin(CA.issue_cert("127.0.0.1"))) == ["SETUP_ERROR"]


CLIENTS = trustme.CA()


@dataclass
class Client:
    """The files of a client certificate: its chain, its key, and its key with a pass phrase."""

    chain: str
    key: str
    locked_key: str
    phrase: str = "open sesame"


@pytest.fixture
def client(tmp_path: Path) -> Client:
    certificate = CLIENTS.issue_cert("player@example.invalid")
    found = Client(*(str(tmp_path / name) for name in ("client.pem", "client.key", "locked.key")))
    certificate.cert_chain_pems[0].write_to_path(found.chain)
    certificate.private_key_pem.write_to_path(found.key)
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(found.phrase.encode()))
    Path(found.locked_key).write_bytes(locked)
    return found


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_clientCertificate_whereTheServerAsksForOne_isShown(
    told: Setup, client: Client, newest: ssl.TLSVersion
) -> None:
    with Server(CA.issue_cert("127.0.0.1"), client_of=CLIENTS, newest=newest) as server:
        assert told(server, client_certificate_file=client.chain, client_key_file=client.key) == ["SESSION_STARTED"]


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_clientCertificate_missing_isToldAsTLS(
    stage_factory: Callable[..., Stage], ca_file: str, newest: ssl.TLSVersion
) -> None:
    """When the server requires a client certificate and the host has set none, the library reports a TLS error without
    `orphan_possible`."""
    stage = stage_factory(ca_file=ca_file)
    with Server(CA.issue_cert("127.0.0.1"), client_of=CLIENTS, newest=newest) as server:
        stage.play(delegate=stage.delegate(ssm_url=server.url), tag="a")
        stage.settle()
        error = stage.events.error(usher.EventType.SETUP_ERROR, "a")
        assert (error.status, error.orphan_possible) == (usher.Status.TLS, False), error
        assert server.requests == []
        assert (error.tls_fault, error.explain().advice) == (
            usher.TLSFault.CLIENT_CERTIFICATE,
            "App: check the client certificate.",
        )


def test_handshakeFailure_whereTheServerAsksForNoCertificate_hasNoTLSFault(
    stage_factory: Callable[..., Stage], ca_file: str
) -> None:
    """The server of TLS 1.2 has no cipher in common with the library, and sends the same alert as for a missing client
    certificate. It has not asked for a certificate, so the error does not mention one."""
    stage = stage_factory(ca_file=ca_file)
    server = Server(CA.issue_cert("127.0.0.1"), newest=ssl.TLSVersion.TLSv1_2)
    assert server._tls
    server._tls.set_ciphers("DHE-RSA-AES256-GCM-SHA384:DHE-RSA-AES128-GCM-SHA256")
    with server:
        stage.play(delegate=stage.delegate(ssm_url=server.url), tag="a")
        stage.settle()
        error = stage.events.error(usher.EventType.SETUP_ERROR, "a")
        assert (error.status, error.tls_fault) == (usher.Status.TLS, usher.TLSFault.NONE), error


def test_lockedClientKey_withItsPassPhrase_isUsed(told: Setup, client: Client) -> None:
    with Server(CA.issue_cert("127.0.0.1"), client_of=CLIENTS) as server:
        files = {"client_certificate_file": client.chain, "client_key_file": client.locked_key}
        assert told(server, **files, client_key_passphrase=client.phrase) == ["SESSION_STARTED"]


def test_lockedClientKey_withoutItsPassPhrase_isRefusedAndNobodyIsAsked(client: Client) -> None:
    """The library refuses to make a context when the pass phrase of the client key is missing; no code asks for the
    pass phrase on the host's terminal."""
    script = (
        "import sys, usher\n"
        "try: usher.Context(client_certificate_file=sys.argv[1], client_key_file=sys.argv[2])\n"
        "except usher.UsherError as error: print('status', error.status.name)\n"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(environment())
        os.execv(sys.executable, [sys.executable, "-c", script, client.chain, client.locked_key])
    try:
        said = b""
        while b"\n" not in said.partition(b"status")[2] and select.select([terminal], [], [], 30)[0]:
            try:
                said += os.read(terminal, 4096)
            except OSError:  # the child has closed the terminal
                break
        assert said.split() == [b"status", b"TLS"]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


WRONG_FILES: dict[str, tuple[dict[str, str], type[usher.UsherError]]] = {
    "no such authorities": ({"ca_file": "{nothing}"}, usher.InvalidArgumentError),
    "a folder of authorities": ({"ca_file": "{folder}"}, usher.InvalidArgumentError),
    "empty authorities": ({"ca_file": "{empty}"}, usher.InvalidArgumentError),
    "authorities that are none": ({"ca_file": "{junk}"}, usher.TLSError),
    "no such certificate": ({"client_certificate_file": "{nothing}"}, usher.InvalidArgumentError),
    "a certificate without a key": ({"client_certificate_file": "{chain}"}, usher.TLSError),
    "a certificate that is none": ({"client_certificate_file": "{junk}", "client_key_file": "{key}"}, usher.TLSError),
    "a key that is none": ({"client_certificate_file": "{chain}", "client_key_file": "{junk}"}, usher.TLSError),
    "a key of another": ({"client_certificate_file": "{chain}", "client_key_file": "{other}"}, usher.TLSError),
    "a key without a certificate": ({"client_key_file": "{key}"}, usher.InvalidArgumentError),
    "a wrong pass phrase": (
        {"client_certificate_file": "{chain}", "client_key_file": "{locked}", "client_key_passphrase": "sesame"},
        usher.TLSError,
    ),
    "a pin of no file": ({"pinned_public_key": "{nothing}"}, usher.InvalidArgumentError),
    "a pin that is too short": ({"pinned_public_key": "sha256//AAAA"}, usher.InvalidArgumentError),
    "a second pin that is none": (
        {"pinned_public_key": f"sha256//{'A' * 43}=;{'A' * 43}="},
        usher.InvalidArgumentError,
    ),
}


@pytest.mark.parametrize("wrong", WRONG_FILES)
def test_certificateFile_thatIsWrong_isRefusedWithTheContext(client: Client, tmp_path: Path, wrong: str) -> None:
    """The library refuses to make a context when a certificate file, pass phrase or pin is invalid."""
    (tmp_path / "empty").touch()
    (tmp_path / "junk").write_text("not a certificate\n", encoding="ascii")
    CLIENTS.issue_cert("other@example.invalid").private_key_pem.write_to_path(str(tmp_path / "other"))
    places = {name: str(tmp_path / name) for name in ("nothing", "empty", "junk", "other")}
    places |= {"folder": str(tmp_path), "chain": client.chain, "key": client.key, "locked": client.locked_key}
    options, error = WRONG_FILES[wrong]
    with pytest.raises(error):
        usher.Context(**{name: text.format(**places) for name, text in options.items()})


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
with usher.Context(ca_file=ca_file or None, proxy="") as context, usher.Player(context) as player:
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
    with Server(CA.issue_cert("127.0.0.1"), newest=newest) as server:
        command = [sys.executable, "-c", SCRIPT, server.url, ca_file]
        host = subprocess.run(
            command, env=environment(OPENSSL_CONF=str(settings)), capture_output=True, text=True, timeout=60, check=True
        )
        assert host.stdout.split() == [wanted]
        assert bool(server.requests) == (wanted == "OK")
