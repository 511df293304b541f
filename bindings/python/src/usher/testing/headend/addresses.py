"""The URLs of a head-end. A player gets them in its settings."""

from __future__ import annotations

from pathlib import Path

from . import paths
from .config import AnyKeySystem, Api, HeadEndConfig, key_system_name
from .fixtures import Authority
from .oracle.control import PREFIX


class Addresses:
    """The addresses of a head-end. They are known as soon as the head-end listens."""

    config: HeadEndConfig
    control_token: str | None
    _port: int
    _authority: Authority | None

    @property
    def port(self) -> int:
        """The TCP port. Before the first start this is the port of the settings, which may be 0."""
        return self._port

    @property
    def url(self) -> str:
        """The URL ``http[s]://host:port``, without a slash at the end."""
        scheme = "https" if self.config.tls else "http"
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        return f"{scheme}://{host}:{self._port}"

    @property
    def tenant_url(self) -> str:
        """``…/{TENANT}``."""
        return self.url + paths.root(self.config.tenant)

    @property
    def ssm_url(self) -> str:
        """The SSM URL for a player's settings, ``…/{TENANT}/ssm``, without ``/v1``."""
        return self.url + paths.ssm(self.config.tenant)

    @property
    def control_url(self) -> str:
        """``…/_control``."""
        return self.url + PREFIX.rstrip("/")

    @property
    def page_url(self) -> str:
        """The URL of the head-end's page, with the control token if the head-end requires one. There is no page if the
        control endpoints are off."""
        return self.url + ("/" if self.control_token is None else f"/?token={self.control_token}")

    def license_url(self, key_system: AnyKeySystem, api: Api = "v1") -> str:
        """Returns the licence URL of a key system; with ``v2`` the URL for SSP V2, where the licence request opens the
        session."""
        return self.url + paths.license(self.config.tenant, key_system_name(key_system), api)

    def certificate_url(self, key_system: AnyKeySystem) -> str:
        """Returns the URL of the certificate for ``fairplay`` or ``widevine``."""
        return self.url + paths.certificate(self.config.tenant, key_system_name(key_system))

    @property
    def fps_url(self) -> str:
        """The URL for key requests to the generic FairPlay key server."""
        return self.url + paths.fps(self.config.tenant)

    @property
    def fps_certificate_url(self) -> str:
        """The URL of the key server's application certificate. The FairPlay licence service sends the same one."""
        return self.url + paths.fps_certificate(self.config.tenant)

    @property
    def rights_url(self) -> str:
        """The URL of the ExpressPlay licence service, without a token."""
        return self.url + paths.rights(self.config.tenant)

    @property
    def entitlement_url(self) -> str:
        """The URL of the entitlement server, SEES."""
        return self.url + paths.entitlement(self.config.tenant)

    @property
    def ca_file(self) -> Path | None:
        """The PEM file with the certificate of the head-end's authority; None without TLS. The file exists as long as
        the head-end object."""
        return self._authority.ca_file if self._authority is not None else None
