"""Plays an encrypted clip with a common delegate: a subclass makes its headers and the licence URL.

Usage:
    pip install libusher av
    python common.py CLIP LICENSE_URL CONTENT_TOKEN KEY_ID DEVICE   (key id: 32 hex digits; DEVICE: this screen's name)
"""

import sys

import clip as screen

import usher


class Portal(usher.CommonDelegate):
    def __init__(self, context: usher.Context, license_url: str, token: str, device: str) -> None:
        self.token, self.device = token, device
        super().__init__(context, license_url=license_url)

    def http_headers(self, call):  # generateHTTPHeaders(assetID) of the SDKs
        return {"nv-authorizations": self.token, "X-Device": self.device}

    def license_url(self, call):  # getLicenseRequestUrl() of the SDKs
        return f"{super().license_url(call)}?device={self.device}"


def main(clip: str, license_url: str, token: str, key_id: str, device: str) -> None:
    kid = bytes.fromhex(key_id)
    with usher.Context() as context, usher.Player(context) as player:
        delegate = Portal(context, license_url, token, device)
        with player.play(delegate=delegate) as playback:
            licence = playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([kid]))
            print(screen.play(clip, licence.clear_keys()[kid]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 6 else __doc__)
