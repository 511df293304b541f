"""Sends the FairPlay application certificate and the Widevine service certificate."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from ..fixtures import encode_base64
from ..knobs import CertificateForm
from ..network.replies import Reply, bytes_reply, json_reply, text_reply
from ..oracle.journal import Entry
from ..service import Answer, Route, Service


def fairplay(service: Service, entry: Entry) -> Answer:
    """Sends the application certificate, by default as DER. Needs no authorisation (source: FairPlay licence
    service)."""
    says, der = service.config.certificate, service.fairplay_certificate
    replies: dict[CertificateForm, Callable[[], Reply]] = {
        "der": lambda: bytes_reply(der),
        "base64": lambda: text_reply(encode_base64(der, says.base64)),
        "pem": lambda: text_reply(ssl.DER_cert_to_PEM_cert(der), "application/x-pem-file"),
        "json": lambda: json_reply({says.field: encode_base64(der, says.base64)}),
        "empty": lambda: bytes_reply(b""),
    }
    return Answer(replies[says.form]())


def widevine(service: Service, entry: Entry) -> Answer:
    """Sends the service certificate as bytes (source: Widevine licence service)."""
    return Answer(bytes_reply(service.widevine_certificate))


_FPLS = "/fpls/contentlicenseservice/v1/certificates"
_WVLS = "/wvls/contentlicenseservice/v1/certificates"

ROUTES = (
    Route("GET", "/fps/certificate", "certificate", fairplay, family="license", key_system="fairplay"),
    Route("GET", _FPLS, "certificate", fairplay, family="license", key_system="fairplay"),
    Route("GET", _FPLS + "/{tenant}", "certificate", fairplay, family="license", key_system="fairplay"),
    Route("GET", _WVLS, "certificate", widevine, family="license", key_system="widevine"),
)
