"""Several players at the same time, ported line by line to Python.

Arguments, actions and output are those of multi_instance.c. S2:17 is line 17 of document S2 (see README.md).
"""

from __future__ import annotations

import sys

from av_player import MainQueue, make_spc, pictures, say, show

import usher


class MultiInstanceDelegate(usher.CommonDelegate):
    """Seed S2, line 15: MultiInstanceDelegate, a subclass of OTVCommonLicenseDelegate. The application writes this
    class."""

    def __init__(self, context: usher.Context, certificate_url: str, license_url: str) -> None:
        self.tokenIDMap: dict[bytes, str] = {}
        super().__init__(context, certificate_url=certificate_url, license_url=license_url)

    def setStreamToken(self, token: str, content_id: str) -> None:
        """Seed S2, line 17: the page says "stored in a map using the content ID as the key"."""
        self.tokenIDMap[content_id.encode()] = token

    def http_headers(self, call: usher.HookCall[dict[str, str]]) -> dict[str, str] | None:
        """Seed S2, line 19: generateHTTPHeaders(assetID). The asset ID is "base-64 encoded JSON which includes the SSP
        content ID"."""
        assert call.asset_id is not None
        token = self.tokenIDMap.get(usher.content_id(call.asset_id, usher.ContentIDRule.SSP))
        return None if token is None else {"nv-authorizations": token}  # S2:19  "pulled from the map"


class Screen:
    """S2:5  "create two players" """

    def __init__(self, drm_manager: usher.Context) -> None:
        self.player = usher.Player(drm_manager)
        self.item: usher.Playback | None = None

    def play_clear(self, clip: str) -> None:
        """Seed S2, line 23: the page says "the clear stream does not require a license and so does not have a token or
        content ID"."""
        self.item = self.player.play(clear=True)
        say(pictures(clip))

    def play(self, clip: str, skd: str) -> None:
        """Seed S2, line 19: plays an encrypted stream. The sentence "When a license request is made ..." describes
        this."""
        try:
            self.item = self.player.play()
            spc = make_spc(b"", self.item.get_content_id(skd))
            ckc = self.item.get_license(usher.KeySystem.FAIRPLAY, spc, asset_id=skd.removeprefix("skd://"))
        except usher.UsherError as error:
            say(f"no licence: USHER_E_{error.status.name}")
        else:
            show(clip, spc, ckc.data)


def main(kind: str, certificate_url: str, license_url: str, ssm_url: str) -> None:
    main_queue = MainQueue()
    with usher.Context() as drm_manager:
        if kind == "default":  # S2:13
            default = usher.DefaultDelegate(drm_manager, certificate_url=certificate_url, license_url=license_url)
            drm_manager.set_delegate(default)
        elif kind == "own":  # S2:15
            own = MultiInstanceDelegate(drm_manager, certificate_url, license_url)
            drm_manager.set_delegate(own)
        elif kind == "library":
            library = usher.MultiInstanceDelegate(
                drm_manager, certificate_url=certificate_url, license_url=license_url, ssm_url=ssm_url
            )
            drm_manager.set_delegate(library)
        screens = [Screen(drm_manager), Screen(drm_manager)]
        while action := main_queue.next():
            match action:
                case ["header", token]:  # S2:17  setHTTPHeader
                    default.set_http_header("nv-authorizations", token)
                case ["token", token, content_id]:  # S2:17
                    (own if kind == "own" else library).setStreamToken(token, content_id)
                case ["remove", content_id]:  # S2:21
                    if kind == "own":
                        del own.tokenIDMap[content_id.encode()]
                    else:
                        del library.tokens[content_id]
                case ["play", screen, clip, skd]:
                    screens[int(screen)].play(clip, skd)
                case ["clear", screen, clip]:
                    screens[int(screen)].play_clear(clip)
                case ["stop", screen]:
                    screens[int(screen)].player.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
