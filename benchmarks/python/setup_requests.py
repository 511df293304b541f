"""Set-up, licence and zap with the Python package `requests`. The variants are the same as in setup_easy.c."""

from __future__ import annotations

import peer
import requests

options = peer.read()


def new_session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.verify = options.ca or True
    return session


def post(path: str, tokens: str, body: str) -> str:
    headers = peer.headers(tokens)
    reply = session.post(f"{options.base}/{path}", data=body, headers=headers, timeout=10)
    reply.raise_for_status()
    found: str = reply.json().get("sessionToken", "")
    return found


def play() -> str:
    if options.variant >= 4:
        return post("licenses-v2", "content.token", peer.CHALLENGE)
    token = post("sessions/setup", "content.token", "{}")
    post("licenses", f"content.token,{token}", peer.CHALLENGE)
    return token


session = new_session()
token = play()
watch = peer.Stopwatch()
for turn in range(-options.warm_up, options.rounds):
    if options.is_cold:
        post("sessions/teardown", token, "{}")
        session.close()
    with watch.running(turn >= 0):
        if options.is_cold:
            session = new_session()
        elif options.variant == 1:
            post("sessions/teardown", token, "{}")
        token = play()
watch.print(options.rounds)
