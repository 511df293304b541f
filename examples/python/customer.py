"""Plays an encrypted clip under the operator's own session management, written as coroutines.

Usage:
    pip install libusher av
    python customer.py CLIP BACKEND_URL KEY_ID        (key id: 32 hex digits)
"""

import asyncio
import sys
import threading

import backend
import clip as screen

import usher


class Portal(usher.aio.CustomerDelegate):
    """Gets sessions and licences from the operator's servers. The event loop runs while the coroutines wait."""

    def __init__(self, context: usher.aio.Context, url: str) -> None:
        self.url, self.session = url, ""
        super().__init__(context)

    async def license(self, request):  # OTVCustomerSSMCallback.license of the SDKs
        what = "renew" if request.type is usher.LicenseType.RENEWAL else "start"
        status, reply = await backend.ask(self.url, what, self.session, request.payload)
        if "licence" not in reply:
            return usher.LicenseResponse(http_status=status, service_code=reply["code"], message=reply["message"])
        self.session = reply["session"]
        kept_alive_by = usher.RenewType.ENFORCED if reply["renewals"] else usher.RenewType.HEARTBEAT
        return usher.LicenseResponse(reply["licence"].encode(), heartbeat_s=reply["period"], renew_type=kept_alive_by)

    async def heartbeat(self, call):  # OTVCustomerSSMCallback.heartbeat of the SDKs
        status, _ = await backend.ask(self.url, "alive", self.session)
        return (
            usher.Status.SESSION if status == 403 else usher.Status.OK
        )  # 403: the operator ended the session. After an exception the library retries

    async def teardown(self, call):
        await backend.ask(self.url, "stop", self.session)


async def main(clip: str, url: str, key_id: str) -> int:
    kid, stop = bytes.fromhex(key_id), threading.Event()
    challenge = usher.clear_key_request([kid])
    async with usher.aio.Context() as context:
        context.add_observer(lambda event: stop.set() if event.must_stop else None)
        playing = usher.aio.Player(context).play(
            delegate=Portal(context, url), payload=lambda request: challenge
        )  # the CDM's payload for a renewal
        async with await playing as playback:
            try:
                licence = await playback.get_license(usher.KeySystem.CLEARKEY, challenge)
            except usher.UsherError as error:
                print(f"{error.explain().summary} ({error})")
                return 1
            print(await asyncio.to_thread(screen.play, clip, licence.clear_keys()[kid], stop))
    return int(stop.is_set())


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])) if len(sys.argv) == 4 else __doc__)
