"""Plays an encrypted clip under a session; another thread answers the library's questions later, while asyncio waits.

Usage:
    pip install libusher av
    python answer_later.py CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID        (key id: 32 hex digits)
"""

import asyncio
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import clip as screen

import usher


async def main(clip: str, license_url: str, ssm_url: str, token: str, key_id: str) -> None:
    pool, stop, challenge = ThreadPoolExecutor(1), threading.Event(), usher.clear_key_request([bytes.fromhex(key_id)])

    def later(request, answer):
        print(f"{type(request).__name__}: answered later")
        pool.submit(lambda: (time.sleep(0.05), request.answer(answer)))  # your app: ask the portal, or the CDM
        return usher.LATER

    def on_event(event: usher.aio.Event) -> None:
        print(f"{event.time_ms / 1000:6.3f} s  {event.type.name} {event.error or ''}")
        if event.must_stop:
            stop.set()

    async with usher.aio.Context() as context:
        context.add_observer(on_event)
        delegate = usher.aio.SSPDelegate(
            context, license_url=license_url, ssm_url=ssm_url, token_callback=lambda request: later(request, token)
        )
        playing = usher.aio.Player(context).play(delegate=delegate, payload=lambda request: later(request, challenge))
        async with await playing as playback:
            licence = await playback.get_license(usher.KeySystem.CLEARKEY, challenge)
            print(await asyncio.to_thread(screen.play, clip, licence.clear_keys()[bytes.fromhex(key_id)], stop))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])) if len(sys.argv) == 6 else __doc__)
