"""Sends requests to the operator's own servers, as an operator's app already does. customer.py uses it.

The reply to a POST to BACKEND/WHAT/SESSION is JSON: the session, its period in seconds, whether renewals keep it alive,
and the licence; or an error code and a message.
"""

import asyncio
import json
import urllib.error
import urllib.request


async def ask(backend: str, what: str, session: str, body: bytes = b"") -> tuple[int, dict]:
    """Returns the reply's HTTP status and JSON. Raises OSError if the server does not reply."""

    def post() -> tuple[int, dict]:
        try:
            with urllib.request.urlopen(f"{backend}/{what}/{session}", data=body, timeout=5) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    return await asyncio.to_thread(post)
