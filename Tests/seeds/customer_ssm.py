"""The application's own session management, ported line by line to Python.

Arguments, actions and output are those of customer_ssm.c. S3:53 is line 53 of document S3 (see README.md).
"""

from __future__ import annotations

import base64
import json
import sys
import urllib.error
import urllib.request
from typing import Any

from av_player import MainQueue, make_spc, say, show

import usher

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url: str, tokens: str = "", body: bytes | None = None) -> tuple[int, bytes]:
    """Sends a POST, or a GET without a body; returns HTTP status and body of the reply."""
    headers = {"Content-Type": "application/octet-stream"} | ({"nv-authorizations": tokens} if tokens else {})
    try:
        with OPENER.open(urllib.request.Request(url, body, headers), timeout=5) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, b"{}"


class CustomerCallback:
    """S3:22  CustomerCallback(licenseURL: licenseURL, ssmServerURL: ssmServerURL)"""

    def __init__(self, license_url: str, ssm_server_url: str, renew_type: str) -> None:
        self.license_url = license_url
        self.ssm_server_url = ssm_server_url
        self.renew_type = renew_type
        self.heartbeat_period = 0.0  # S3:92
        self.content_token = self.session_token = ""
        self.item: usher.Playback | None = None

    def ssm(self, what: str, tokens: str) -> tuple[int, dict[str, Any]]:
        """Sends a request to the operator's session server, and stores the newest session token. Returns the HTTP
        status and the JSON of the reply."""
        status, body = ask(f"{self.ssm_server_url}/v1/sessions/{what}", tokens, b"{}")
        reply = json.loads(body)
        self.session_token = reply.get("sessionToken", self.session_token)
        return status, reply

    def session_setup(self) -> bool:
        """Seed S3, line 53: the page says "It will be necessary to perform a secure session setup before acquiring the
        licence"."""
        status, reply = self.ssm("setup", self.content_token)
        self.heartbeat_period = reply.get("heartbeat", 0.0)
        return status == 200

    def license(self, request: usher.CustomerRequest) -> usher.LicenseResponse:
        """S3:43  func license(keySystem:payload:licenseType:) -> OTVSSMLicenseResponse"""
        renewal = request.type is usher.LicenseType.RENEWAL  # S3:64
        fairplay = request.key_system == "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2"  # S3:83
        say(f"license({'FairPlay' if fairplay else request.key_system}, {'renewal' if renewal else 'request'})")
        if not renewal and not self.session_setup():
            return usher.LicenseResponse()  # S3:113  license: nil, heartbeat: 0
        tokens = self.session_token if renewal else f"{self.content_token},{self.session_token}"
        _, body = ask(self.license_url + ("?renew=true" if renewal else ""), tokens, request.payload)
        reply = json.loads(body)
        self.session_token = reply.get("sessionToken", self.session_token)
        ckc = base64.b64decode(reply["CkcMessage"])  # S3:97  "is the CKC message"
        if self.renew_type == "default":
            return usher.LicenseResponse(ckc, self.heartbeat_period)  # S3:113  init(license:heartbeat:renewType:)
        return usher.LicenseResponse(ckc, self.heartbeat_period, usher.RenewType[self.renew_type.upper()])

    def heartbeat(self) -> None:
        """Seed S3, line 48: the callback func heartbeat(), which "has no parameters or return values" (line 101)."""
        status, _ = self.ssm("heartbeat", self.session_token)
        say(f"heartbeat(): {status}")
        if status >= 400 and self.item is not None:
            self.item.close()  # S3:101  "the application must take any necessary actions"


def play(player: usher.Player, callback: CustomerCallback, clip: str, skd: str) -> None:
    try:
        item = callback.item = player.play(renewed=lambda _, ckc: say(f"renewed: CKC of {len(ckc.data)} bytes"))
        spc = make_spc(item.get_certificate(), item.get_content_id(skd))
        ckc = item.get_license(usher.KeySystem.FAIRPLAY, spc)  # ckcMessage()
    except usher.UsherError as error:
        say(f"no licence: USHER_E_{error.status.name}")
    else:
        show(clip, spc, ckc.data)


def main(certificate_url: str, license_url: str, ssm_server_url: str, renew_type: str) -> None:
    main_queue = MainQueue()
    with usher.Context() as drm_manager:
        # S3:19  getFairplayCertificate(certificateURL: fairplayCertificateURL)
        _, fairplay_certificate = ask(certificate_url)
        # S3:20  OTVCustomerSSMDelegate(certificate: fairplayCertificate)
        customer_ssm_delegate = usher.CustomerDelegate(drm_manager, certificate=fairplay_certificate)
        # S3:22  CustomerCallback(licenseURL: licenseURL, ssmServerURL: ssmServerURL)
        callback = CustomerCallback(license_url, ssm_server_url, renew_type)
        # S3:23  customerSSMDelegate.setCallback(customerCallback)
        customer_ssm_delegate.set_callback(callback)
        # S3:25  OTVDRMManager.shared.setLicenseDelegate(customerSSMDelegate)
        drm_manager.set_delegate(customer_ssm_delegate)
        drm_manager.add_observer(lambda event: say(event.type.name))
        player = usher.Player(drm_manager)
        while action := main_queue.next():
            match action:
                case ["play", clip, skd, content_token]:
                    callback.content_token = content_token
                    play(player, callback, clip, skd)
                case ["stop"]:  # S3:10  "The client application handles session management"
                    assert callback.item is not None
                    callback.item.close()
                    callback.item.wait_closed()
                    status, _ = callback.ssm("teardown", callback.session_token)
                    say(f"stopped: {status}")


if __name__ == "__main__":
    main(*sys.argv[1:])
