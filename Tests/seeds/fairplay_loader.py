"""The FairPlay resource loader of the seed, ported line by line to Python.

Arguments and output are those of fairplay_loader.c.
"""

from __future__ import annotations

import sys

import usher


def my_asset_identifier(url: str) -> str:
    """getMyAssetIdentifierFromURL(url): the packager of this example writes the content id after skd://, or after a
    semicolon."""
    _, semicolon, content_id = url.rpartition(";")
    return content_id if semicolon else url[len("skd://") :]


def make_spc(request: usher.SPCRequest) -> bytes:
    """Makes the SPC: [loadingRequest streamingContentKeyRequestDataForApp:appCert contentIdentifier:assetId ...], with
    a test CDM."""
    head = b"\0\0\0\1USPC" + bytes(32) + b"sixteen bytes nr" + b"this tv".ljust(16, b"\0")
    return head + my_asset_identifier(request.url).encode()


def main(use_case: str, server: str, url: str, *registered: str) -> int:
    def should_wait_for_loading(request: usher.ServerRequest) -> object:
        """The application decides to which server the licence request goes, and how to get the ExpressPlay token."""
        asset_id = my_asset_identifier(request.url)
        if use_case == "1":  # strUrl = getOnPremiseServerUrl(strUrl, assetId)
            return server, {"X-Asset": "on-premise"}
        if use_case == "2":  # strUrl = getExpressPlayTokenUrlFromEntilementServer(strUrl, assetId, true, &error)
            # bEnforceDeviceID: false registers the device, true needs it.
            request.ask_entitlement(server, asset_id.encode(), request.token_kind)
        else:  # strUrl is already the ExpressPlay token URL: skd:// becomes http(s)://
            request.answer_builtin()
        return None

    options: usher.LoaderOptions = {
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
        context.add_observer(lambda event: print(f"event {event.type.name}\n", end="", flush=True))
        # [[PTDefaultMediaPlayerClientFactory defaultFactory] registerPTAVAssetResourceLoader:resourceLoader]
        usher.ResourceLoader(context, make_spc, should_wait_for_loading, **options)
        playback = usher.Player(context).play()
        try:
            ckc = playback.get_resource(url)
        except usher.UsherError as error:  # finishLoadingWithError:
            print(f"error {error.status.name}: {error}\n", end="")
            return 1
        print(f"CKC {len(ckc)}\n", end="")  # finishLoadingWithResponse:
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
