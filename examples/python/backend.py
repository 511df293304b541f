"""What an operator's app has already: how it talks to the operator's own servers. For customer.py, which is about usher alone.

A POST to BACKEND/WHAT/SESSION is answered with JSON: the session, its period in seconds, whether renewals keep it alive, the licence; or a code and
words.
"""

import asyncio
import json
import urllib.error
import urllib.request


async def ask(backend: str, what: str, session: str, body: bytes = b"") -> tuple[int, dict]:
    """The answer's HTTP status and JSON. Raises OSError where nobody answers."""

    def post() -> tuple[int, dict]:
        try:
            with urllib.request.urlopen(f"{backend}/{what}/{session}", data=body, timeout=5) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    return await asyncio.to_thread(post)
