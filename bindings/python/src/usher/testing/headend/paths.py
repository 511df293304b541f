"""The paths of a head-end's services. ``Addresses`` makes its URLs with them; the page lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from .config import KEY_SYSTEMS, SERVICE_OF, Api, KeySystem

_TITLES: Mapping[KeySystem, str] = {
    "fairplay": "FairPlay",
    "widevine": "Widevine",
    "playready": "PlayReady",
    "clearkey": "Clear Key",
}
_SESSION_CALLS = (("set-up", "setup"), ("heartbeat", "heartbeat"), ("teardown", "teardown"))
_WITH_CERTIFICATE: tuple[KeySystem, ...] = ("fairplay", "widevine")


@dataclass(frozen=True, slots=True)
class ServicePath:
    """The path of one service.

    Attributes:
        group: the kind of service, such as ``Licences, SSP V1``.
        name: the name within the group.
        path: the path, with the tenant.
    """

    group: str
    name: str
    path: str


def root(tenant: str) -> str:
    """Returns the first part of all paths."""
    return f"/{quote(tenant)}"


def ssm(tenant: str) -> str:
    """Returns the path of the session manager, without ``/v1``."""
    return f"{root(tenant)}/ssm"


def license(tenant: str, key_system: KeySystem, api: Api) -> str:
    """Returns the path of a licence service."""
    return f"{root(tenant)}/{SERVICE_OF[key_system]}/contentlicenseservice/{api}/licenses"


def certificate(tenant: str, key_system: KeySystem) -> str:
    """Returns the path of the certificate of FairPlay or Widevine.

    Raises:
        ValueError: another key system.
    """
    if key_system not in _WITH_CERTIFICATE:
        raise ValueError(f"{key_system} has no certificates")
    return f"{root(tenant)}/{SERVICE_OF[key_system]}/contentlicenseservice/v1/certificates"


def fps(tenant: str) -> str:
    """Returns the path for key requests to the generic FairPlay key server."""
    return f"{root(tenant)}/fps/ckc"


def fps_certificate(tenant: str) -> str:
    """Returns the path of the key server's certificate."""
    return f"{root(tenant)}/fps/certificate"


def rights(tenant: str) -> str:
    """Returns the path of the ExpressPlay licence service."""
    return f"{root(tenant)}/hms/fp/rights/"


def entitlement(tenant: str) -> str:
    """Returns the path of the entitlement server."""
    return f"{root(tenant)}/sees/entitlement"


def all_of(tenant: str) -> list[ServicePath]:
    """Returns the paths that a player of this tenant may need, group by group."""
    sessions = f"{ssm(tenant)}/v1/sessions"
    versions: tuple[Api, ...] = ("v1", "v2")
    return [
        ServicePath("Sessions, SSM v1", "SSM URL", ssm(tenant)),
        *(ServicePath("Sessions, SSM v1", call, f"{sessions}/{path}") for call, path in _SESSION_CALLS),
        *(
            ServicePath(f"Licences, SSP {api.upper()}", _TITLES[key_system], license(tenant, key_system, api))
            for api in versions
            for key_system in KEY_SYSTEMS
        ),
        *(
            ServicePath("Certificates", _TITLES[key_system], certificate(tenant, key_system))
            for key_system in _WITH_CERTIFICATE
        ),
        ServicePath("FairPlay key server", "key requests", fps(tenant)),
        ServicePath("FairPlay key server", "certificate", fps_certificate(tenant)),
        ServicePath("ExpressPlay", "licences", rights(tenant)),
        ServicePath("ExpressPlay", "entitlements", entitlement(tenant)),
    ]
