"""Certificates: the FairPlay application certificate and the Widevine service certificate."""

from __future__ import annotations

from ..journal import Entry
from ..replies import bytes_reply
from ..service import Answer, Route, Service


def fairplay(service: Service, entry: Entry) -> Answer:
    """The raw DER certificate; no authorisation asked (source: FairPlay licence service)."""
    return Answer(bytes_reply(service.fairplay_certificate))


def widevine(service: Service, entry: Entry) -> Answer:
    """The service certificate, raw (source: Widevine licence service)."""
    return Answer(bytes_reply(service.widevine_certificate))


_FPLS = "/fpls/contentlicenseservice/v1/certificates"
_WVLS = "/wvls/contentlicenseservice/v1/certificates"

ROUTES = (
    Route("GET", _FPLS, "certificate", fairplay, family="license", key_system="fairplay"),
    Route("GET", _FPLS + "/{tenant}", "certificate", fairplay, family="license", key_system="fairplay"),
    Route("GET", _WVLS, "certificate", widevine, family="license", key_system="widevine"),
)
