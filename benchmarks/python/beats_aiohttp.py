"""Sends heartbeats with aiohttp: one client session with a limited number of connections."""

from __future__ import annotations

import asyncio
import ssl
import time

import aiohttp
import peer

options = peer.read()


async def main() -> None:
    tls = ssl.create_default_context(cafile=options.ca) if options.ca else True
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=options.in_flight, ssl=tls)) as session:

        async def post(route: str, token: str) -> str:
            headers = peer.headers(token)
            async with session.post(f"{options.base}/sessions/{route}", data=b"{}", headers=headers) as reply:
                reply.raise_for_status()
                found: str = (await reply.json())["sessionToken"]
                return found

        async def beat(index: int) -> None:
            tokens[index] = await post("heartbeat", tokens[index])

        tokens = [await post("setup", "content.token") for _ in range(options.sessions)]
        watch = peer.Stopwatch()
        due = time.monotonic()
        for turn in range(-options.warm_up, options.rounds):
            if turn == 0:
                watch.start()
            if options.in_flight == 1:
                for index in range(options.sessions):
                    if options.pace:
                        due += 1 / options.pace
                        await asyncio.sleep(max(0.0, due - time.monotonic()))
                    await beat(index)
            else:
                await asyncio.gather(*map(beat, range(options.sessions)))
        watch.print(options.rounds * options.sessions)


asyncio.run(main())
