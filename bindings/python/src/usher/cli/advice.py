"""What a tester can do next: one text for each kind of failure."""

from __future__ import annotations

from .wire.exchange import Exchange, Failure

_FAILURES = {
    Failure.NAME: "Check the spelling of the host in the URL, and the name server of this machine.",
    Failure.REFUSED: "Check that the head-end runs, and the port in the URL.",
    Failure.UNREACHABLE: "Check the network, a VPN that the head-end may need, and the address in the URL.",
    Failure.CONNECT_TIMEOUT: "Check the address and the port in the URL, and firewalls between here and the server.",
    Failure.TLS: "Check that the URL names the host of the certificate, and the clock of this machine. If the head-end "
    "has an authority of its own, give its certificate with --ca-file.",
    Failure.TIMEOUT: "Look for the request in the head-end's log: did it arrive, and what does it wait for? --timeout "
    "sets a longer limit.",
    Failure.RESET: "Look for a crash in the head-end's log, and for a proxy or firewall that ends connections.",
    Failure.CLOSED: "Look for a crash in the head-end's log, and for a proxy or firewall that ends connections.",
    Failure.NOT_HTTP: "Check the scheme and the port in the URL: an https port does not answer http, and the other way "
    "round.",
    Failure.CUT: "Compare Content-Length with the body that the server really sends, and look for a proxy that cuts "
    "replies.",
    Failure.TOO_LARGE: "Check the URL: a reply of the protocol has some hundred bytes.",
}

_STATUSES = {
    401: "Check that the file of --token-file has a content token of this operator, that it has not expired, and that "
    "the head-end reads it from the header of --token-header.",
    403: "The head-end knows the token, but does not allow this. Check the rights of the account, and whether the "
    "head-end wants a further header (--header).",
    404: "Check the URL. If the head-end has no /v1 in its paths, use --append-version never.",
    405: "Check the URL: the server that answers does not take POST there.",
    407: "A proxy on the way wants a sign-in, which this command cannot give. Test from another network.",
    408: "The server waited for the request and gave up: check what is between here and the server.",
    413: "The server takes no request of this size.",
    415: "The server does not read the content type of the request, which docs/protocol.md prescribes.",
    429: "The server asks for fewer requests. Wait as long as Retry-After says.",
}

NEXT = {
    "LIMIT": "The account holds as many sessions as it may. Stop its other players, or wait until their sessions "
    "expire, or use the token of another account.",
    "REFUSED": "Look up the code with `usher explain {code} {origin}`, and the time of the request in its log.",
    "PROTOCOL": "Compare the reply with docs/protocol.md. The operator must change the reply, or an option of the "
    "delegate must say what is different.",
    "TOO_LARGE": "Check the URL: a reply of the protocol has some hundred bytes.",
    "REDIRECT": "The library follows no redirect, since the request has a token. Use the URL to which the redirect "
    "leads, if it is the operator's.",
    "NO_TOKEN": "Give the content token with --token-file.",
    "TIMEOUT": _FAILURES[Failure.TIMEOUT],
    "SESSION": "See the step above: the session has failed, so the library sent no licence request.",
}


def of_failure(exchange: Exchange) -> tuple[str, str]:
    """Returns two texts about an exchange that has no complete reply: what is wrong, and what the tester can do
    next."""
    failure = exchange.failure
    if failure is None:
        raise ValueError("the exchange has a reply")
    from urllib.parse import urlsplit

    parts = urlsplit(exchange.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    words = failure.value.format(host=parts.hostname, port=port)
    is_telling = failure in (Failure.TLS, Failure.TOO_LARGE, Failure.NAME, Failure.NOT_HTTP) and exchange.detail
    return words + (f": {exchange.detail}" if is_telling else ""), _FAILURES[failure]


def of_status(status: int) -> str:
    """Returns what the tester can do next if a reply has this HTTP status, which means a failure."""
    if status >= 500:
        return "Look for the error in the head-end's log: the server, or a proxy before it, has failed."
    return _STATUSES.get(status, "Look for the request in the head-end's log.")
