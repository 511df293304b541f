"""Set-up, licence and zap with aiohttp. The variants are the same as in setup_easy.c."""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
import peer

options = peer.read()


async def main() -> None:
    def new_session() -> aiohttp.ClientSession:
        tls = ssl.create_default_context(cafile=options.ca) if options.ca else True
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls))

    async def post(path: str, tokens: str, body: str) -> str:
        headers = peer.headers(tokens)
        async with session.post(f"{options.base}/{path}", data=body, headers=headers) as reply:
            reply.raise_for_status()
            found: str = (await reply.json()).get("sessionToken", "")
            return found

    async def play() -> str:
        if options.variant >= 4:
            return await post("licenses-v2", "content.token", peer.CHALLENGE)
        token = await post("sessions/setup", "content.token", "{}")
        await post("licenses", f"content.token,{token}", peer.CHALLENGE)
        return token

    session = new_session()
    token = await play()
    watch = peer.Stopwatch()
    for turn in range(-options.warm_up, options.rounds):
        if options.is_cold:
            await post("sessions/teardown", token, "{}")
            await session.close()
        with watch.running(turn >= 0):
            if options.is_cold:
                session = new_session()
            elif options.variant == 1:
                await post("sessions/teardown", token, "{}")
            token = await play()
    await session.close()
    watch.print(options.rounds)


asyncio.run(main())
