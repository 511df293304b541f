"""The FairPlay resource loader of the seed, ported line by line to Python.

Arguments and output are those of fairplay_loader.c. S4:67 is line 67 of document S4 (see README.md).
"""

from __future__ import annotations

import sys

from av_player import say, show

import usher
from usher.testing import fairplay


def my_asset_identifier(url: str, known: str) -> str:
    """Seed S4, line 77: getMyAssetIdentifierFromURL(url): returns the content id in the URL. A packager may write
    `skd:{entitlement_server_url}?cid={content_id}` or `skd:{content_id}` (line 31), or the content id after a
    semicolon. If the URL has no content id (line 33), the function returns the one that the application knows."""
    for mark in ("?cid=", ";", "skd://", "skd:"):
        _, found, content_id = url.partition(mark)
        if found and content_id and url != "skd://":
            return content_id
    return known


def server_in(url: str) -> str:
    """Seed S4, line 67: replaces "skd://", here by "http://", because the server listens on loopback."""
    return "http://" + url.removeprefix("skd:").removeprefix("//").partition("?")[0]


def main(use_case: str, server: str, url: str, certificate: str, clip: str, content_id: str, *registered: str) -> int:
    spcs: list[bytes] = []

    def should_wait_for_loading(request: usher.ServerRequest) -> object:
        """Seed S4, lines 17-21: the application decides to which server the request goes, and how to get the token."""
        asset_id = my_asset_identifier(request.url, content_id)
        match use_case:
            case "0":  # S4:48  NSString* const EXPRESSPLAY_TOKEN = @"https://..."
                return server
            case "1":  # S4:85  strUrl = getOnPremiseServerUrl(strUrl, assetId)
                return server, {"X-Asset": "on-premise"}
            case "2":  # S4:106  strUrl = getExpressPlayTokenUrlFromEntilementServer(strUrl, assetId, true, &error)
                # Seed S4, lines 99-103: bEnforceDeviceID. If it is false, the library asks for a token that registers
                # the device; if it is true, for a token that only this device can use.
                asked = server_in(request.url) if server == "-" else server
                request.ask_entitlement(asked, asset_id.encode(), request.token_kind)
            case _:
                # Seed S4, line 109: the page says "strUrl is already the ExpressPlay Token Url". The library replaces
                # the scheme `skd:` of this URL by the option `derived_scheme`. The seed replaces it, too (line 167).
                request.answer_builtin()
        return None

    def make_spc(request: usher.SPCRequest) -> bytes:
        """Seed S4, line 120: makes the SPC, as [loadingRequest streamingContentKeyRequestDataForApp:...] does."""
        asset_id = my_asset_identifier(request.url, content_id)
        spcs.append(fairplay.make_spc(asset_id, request.certificate or b"", device=b"this tv"))
        return spcs[-1]

    options: usher.LoaderOptions = {
        "certificate_file": certificate,  # S4:114-117
        "content_id_rule": usher.ContentIDRule.HOST,
        "allowed_hosts": ["127.0.0.1:*"],
        "derived_scheme": "http",
    }
    if use_case == "2":
        options |= {
            "device_binding": True,
            "customer_cookie": "household-1",
            "device_registered": bool(registered),
        }
    if use_case == "3":
        options["route"] = usher.Route.TOKEN_URL
    with usher.Context() as context:
        context.add_observer(lambda event: say(f"event {event.type.name}"))
        # S4:174  [[PTDefaultMediaPlayerClientFactory defaultFactory] registerPTAVAssetResourceLoader:resourceLoader]
        usher.ResourceLoader(context, make_spc, should_wait_for_loading, **options)
        playback = usher.Player(context).play()
        try:
            ckc = playback.get_resource(url)
        except usher.UsherError as error:  # S4:141  finishLoadingWithError:
            say(f"error {error.status.name}: {error}")
            return 1
        show(clip, spcs[-1], ckc)  # S4:136  finishLoadingWithResponse:
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
