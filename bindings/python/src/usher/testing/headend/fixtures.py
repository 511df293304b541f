"""Licences and certificates for tests. Their format is not that of any vendor; a test can recognise their bytes.

A licence has 36 bytes: first four bytes that name its kind, such as ``CKC1``, then the SHA-256 of the request's
payload. So a test can check that every byte of the payload reached the head-end, and every byte of the licence reached
the client.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import ssl
import tempfile
import warnings
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from .knobs import Base64Form

CKC_MAGIC = b"CKC1"
WIDEVINE_MAGIC = b"WVL1"
PLAYREADY_MAGIC = b"PRL1"
WIDEVINE_CERTIFICATE_REQUEST = b"\x08\x04"
"""The payload with which a Widevine CDM requests the service certificate (source: Widevine licence service)."""


def ckc(spc: bytes) -> bytes:
    """Returns the CKC for a FairPlay SPC: ``CKC1`` + SHA-256, 36 bytes."""
    return CKC_MAGIC + hashlib.sha256(spc).digest()


def widevine_license(challenge: bytes) -> bytes:
    """Returns the licence for a Widevine challenge: ``WVL1`` + SHA-256, 36 bytes."""
    return WIDEVINE_MAGIC + hashlib.sha256(challenge).digest()


def playready_license(challenge: bytes) -> bytes:
    """Returns the licence for a PlayReady SOAP challenge: ``PRL1`` + SHA-256, 36 bytes."""
    return PLAYREADY_MAGIC + hashlib.sha256(challenge).digest()


def service_certificate(tenant: str) -> bytes:
    """Returns the Widevine service certificate of a tenant: ``WVSC`` + SHA-256, 36 bytes."""
    return b"WVSC" + hashlib.sha256(tenant.encode()).digest()


def encode_base64(data: bytes, form: Base64Form) -> str:
    """Returns data as base64, in one of the forms that servers use."""
    encode = base64.urlsafe_b64encode if form.startswith("urlsafe") else base64.b64encode
    text = encode(data).decode("ascii")
    return text.rstrip("=") if form.endswith("unpadded") else text


def certificate_der(common_name: str) -> bytes:
    """Makes a self-signed X.509 certificate as DER (its first bytes are ``30 82``), valid for ten years."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Usher reference head-end"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64]),
        ]
    )
    today = datetime.datetime.now(datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.DER)


class Authority:
    """A certificate authority; its certificate is in a file that exists as long as this object.

    Args:
        hosts: the names in the server's certificate, besides ``localhost`` and ``127.0.0.1``.
    """

    def __init__(self, *hosts: str) -> None:
        self._ca = trustme.CA(organization_name="Usher reference head-end")
        self._server = self._ca.issue_cert(*dict.fromkeys(["127.0.0.1", "localhost", *hosts]))
        self._folder = tempfile.TemporaryDirectory(prefix="usher-headend-")
        self.ca_file = Path(self._folder.name) / "ca.pem"
        self._ca.cert_pem.write_to_path(str(self.ca_file))

    def server_context(self) -> ssl.SSLContext:
        """Returns TLS settings for a server: TLS 1.2 or newer, with a valid certificate."""
        return self._with(self._server)

    def write_server_certificate(self, file: Path) -> None:
        """Writes the server's certificate and its private key to a PEM file."""
        self._server.private_key_and_cert_chain_pem.write_to_path(str(file))

    def expired(self) -> ssl.SSLContext:
        """Returns TLS settings for a server, with a certificate that expired yesterday."""
        now = datetime.datetime.now(datetime.timezone.utc)
        day = datetime.timedelta(days=1)
        return self._with(self._ca.issue_cert("127.0.0.1", "localhost", not_before=now - 30 * day, not_after=now - day))

    def wrong_name(self) -> ssl.SSLContext:
        """Returns TLS settings for a server, with the certificate of another host."""
        return self._with(self._ca.issue_cert("tenant.example.invalid"))

    def old_tls(self) -> ssl.SSLContext:
        """Returns TLS settings for a server, with the right certificate, but no version above TLS 1.0."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
        context.set_ciphers("ALL:@SECLEVEL=0")
        self._server.configure_cert(context)
        return context

    def _with(self, certificate: trustme.LeafCert) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        certificate.configure_cert(context)
        return context
