"""The expected outcome of each fault. The tests compare it with the real outcome. docs/faults.md explains the words.

The reasons are in docs/protocol.md ("When it fails", "Races"): the library retries keep-alives until the lease
ends, and it retries teardowns three times; it does not retry set-ups, licence requests or certificate requests. If the
head-end may have read a request, the library must assume that the head-end may have executed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Row = dict[str, str]

ALIVE = "KEPT_ALIVE; torn down;"
RENEWED = "LICENSE, KEPT_ALIVE; torn down;"


def outage(told: str, arrived: int, renewals: int | None = None) -> Row:
    """Returns the outcomes of a lasting fault during which the library retries keep-alives: one error event, and later
    RECOVERED. `arrived`: how many heartbeats reach the head-end. `renewals`: how many renewals reach it, if this number
    differs from `arrived`."""
    renewals = arrived if renewals is None else renewals
    return {
        "heartbeat lasting": f"HEARTBEAT_ERROR {told} stop, KEPT_ALIVE, RECOVERED; torn down; {arrived} arrived",
        "renewal lasting": f"HEARTBEAT_ERROR {told} stop, LICENSE, KEPT_ALIVE, RECOVERED; torn down; "
        f"{renewals} arrived",
    }


def tried_again(arrived: int) -> Row:
    """Returns the outcomes of a brief fault: the second try succeeds, and the host gets only the event for success."""
    return {
        "heartbeat": f"{ALIVE} {arrived} arrived",
        "heartbeat strict": f"{ALIVE} {arrived} arrived",
        "renewal": f"{RENEWED} {arrived} arrived",
        "renewal strict": f"{RENEWED} {arrived} arrived",
        "teardown": f"torn down; {arrived} arrived",
    }


def unsent(status: str) -> Row:
    """Returns the outcomes of a fault with which no request reaches the head-end. So the head-end cannot hold a session
    whose token the library does not know."""
    return {
        "setup": f"SETUP_ERROR {status} stop; closed; 0 arrived",
        "license": f"LICENSE_ERROR {status} stop; torn down; 0 arrived",
        **tried_again(1),
        **outage(status, 1),
        "teardown lasting": f"TEARDOWN_ERROR {status}; 0 arrived, 1 held",
        "certificate": f"answer {status}; torn down; 0 arrived",
    }


def in_flight(status: str) -> Row:
    """Returns the outcomes of `unsent`, with other outcomes for a lasting fault of a heartbeat or renewal. When such a
    fault ends, a request is in flight. The operating system sends its data again (TCP), so the request succeeds. A
    further keep-alive is due before the test ends, so two keep-alives arrive."""
    twice = {
        name: cell.replace("RECOVERED;", f"RECOVERED, {again}").replace("1 arrived", "2 arrived")
        for name, again in (("heartbeat lasting", "KEPT_ALIVE;"), ("renewal lasting", "LICENSE, KEPT_ALIVE;"))
        for cell in [outage(status, 1)[name]]
    }
    return {**unsent(status), **twice}


def passing(told: str) -> Row:
    """Returns the outcomes if the head-end does not execute the request, and replies with an error after which a retry
    may succeed: 5xx, 429 or a redirect."""
    return {
        "setup": f"SETUP_ERROR {told} stop; closed; 1 arrived",
        "license": f"LICENSE_ERROR {told} stop; torn down; 1 arrived",
        **tried_again(2),
        **outage(told, 28),
        "teardown lasting": f"TEARDOWN_ERROR {told}; 4 arrived, 1 held",
        "certificate": f"answer {told}; torn down; 1 arrived",
    }


def denied(status: int) -> Row:
    """Returns the outcomes if the head-end denies the request with this HTTP status, and the library does not retry
    it."""
    return refused(f"HTTP {status}")


def refused(told: str) -> Row:
    """Returns the outcomes if the head-end refuses the request with an error code, and the library does not retry
    it."""
    keep_alive = f"HEARTBEAT_ERROR {told} stop; torn down; 1 arrived"
    teardown = f"TEARDOWN_ERROR {told}; 1 arrived, 1 held"
    names = ("heartbeat", "heartbeat strict", "heartbeat lasting", "renewal", "renewal strict", "renewal lasting")
    return {**passing(told), **dict.fromkeys(names, keep_alive), "teardown": teardown, "teardown lasting": teardown}


def lost(told: str, arrived: int = 28, renewals: int | None = None) -> Row:
    """Returns the outcomes if the head-end executes the request, but its reply with the new session token is lost.

    If the head-end also accepts the previous token, it answers the retry with a new token. If it is strict, it refuses
    the retry, and holds a session for which the library has no valid token.
    """
    refused = "REFUSED 400 code 1006 stop"
    return {
        "setup": f"SETUP_ERROR {told} stop orphan; closed orphan; 1 arrived, 1 held",
        "license": f"LICENSE_ERROR {told} stop; torn down; 1 arrived",
        **tried_again(2),
        "heartbeat strict": f"HEARTBEAT_ERROR {refused} orphan; closed orphan; 2 arrived, 1 held",
        "renewal strict": f"HEARTBEAT_ERROR {refused}; TEARDOWN_ERROR {refused.removesuffix(' stop')} orphan; "
        f"2 arrived, 1 held",
        **outage(told, arrived, renewals),
        "teardown lasting": f"TEARDOWN_ERROR {told}; 4 arrived",
        "certificate": f"answer {told}; torn down; 1 arrived",
    }


FINE: Row = {
    "setup": "SESSION_STARTED; torn down; 1 arrived",
    "license": "LICENSE; torn down; 1 arrived",
    **tried_again(1),
    "heartbeat lasting": "KEPT_ALIVE x3; torn down; 3 arrived",
    "renewal lasting": "LICENSE, KEPT_ALIVE, LICENSE, KEPT_ALIVE, LICENSE, KEPT_ALIVE; torn down; 3 arrived",
    "teardown lasting": "torn down; 1 arrived",
    "certificate": "certificate; torn down; 1 arrived",
}
"""The outcomes are the same as without a fault."""

NOT_LOOKED_AT: Row = {"teardown": "torn down; 1 arrived", "teardown lasting": "torn down; 1 arrived"}
"""The fault is in the body of the reply. For a teardown, the library checks only the HTTP status."""

# The library sends the teardown twice. The head-end has executed the first request, so it answers the second one with
# 400 and the code 1006. This reply is cut off too: the library gets only its status 400, and does not retry.
CUT: Row = {"teardown lasting": "TEARDOWN_ERROR HTTP 400; 2 arrived"}

# The head-end has lost its session table, so it refuses every session token. The library cannot know the reason for the
# refusal.
FORGOTTEN = "REFUSED 400 code 1006 stop"

EXPECTED: Mapping[str, Row] = {
    "refused": unsent("TRANSPORT"),
    "reset in head": lost("TRANSPORT"),
    "reset in body": lost("TRANSPORT"),
    "mute": {**unsent("TIMEOUT"), "setup": "SETUP_ERROR TIMEOUT stop orphan; closed orphan; 0 arrived"},
    "mute tls": unsent("TIMEOUT"),
    "silence": lost("TIMEOUT", 14, 15),
    "trickle": {**lost("TIMEOUT", 14, 15), **NOT_LOOKED_AT},
    "100 MB": {**lost("TOO_LARGE 200"), "teardown lasting": "TEARDOWN_ERROR TOO_LARGE 400; 4 arrived"},
    "truncated chunks": {**lost("TRANSPORT"), **CUT},
    "bad chunks": lost("TRANSPORT"),
    "length too long": {**lost("TRANSPORT"), **CUT},
    "length too short": {**lost("PROTOCOL 200"), **CUT},
    "html": {**passing("PROTOCOL 200"), "setup": "SETUP_ERROR PROTOCOL 200 stop orphan; closed orphan; 1 arrived"},
    "wrong types": {
        **lost("PROTOCOL 200"),
        **NOT_LOOKED_AT,
    },
    "204": {
        **lost("PROTOCOL 204"),
        **NOT_LOOKED_AT,
        "heartbeat": FINE["heartbeat"],
        # The library takes this reply for a success without a token. But the server has made a new token, and refuses
        # the teardown with the old one.
        "heartbeat strict": "KEPT_ALIVE; TEARDOWN_ERROR REFUSED 400 code 1006 orphan; 1 arrived, 1 held",
        "heartbeat lasting": FINE["heartbeat lasting"],
    },
    "202": FINE,
    "gzip": FINE,
    "deflate": FINE,
    "bom": {**FINE, "certificate": "answer PROTOCOL 200; torn down; 1 arrived"},
    "cookies": FINE,
    "cookies kept": FINE,
    **{f"closing {pause_ms}": FINE for pause_ms in (0, 1, 5)},
    "bomb": {**lost("TOO_LARGE 200"), "teardown lasting": "TEARDOWN_ERROR TOO_LARGE 400; 4 arrived"},
    "bad gzip": {**lost("PROTOCOL 200"), **CUT},
    # The reply to a teardown is so short that the cut leaves nothing of it, so the library gets an empty reply.
    "cut gzip": {**lost("PROTOCOL 200"), **NOT_LOOKED_AT},
    "utf-16": {**lost("PROTOCOL 200"), **CUT},
    "br": {**lost("PROTOCOL 200"), **CUT},
    "hidden gzip": {**lost("PROTOCOL 200"), **CUT},
    "page": {**passing("PROTOCOL 200"), "setup": "SETUP_ERROR PROTOCOL 200 stop orphan; closed orphan; 1 arrived"},
    "200 code": refused("REFUSED 200 code 4000"),
    **{
        key: {**refused("REFUSED 400 code 1007"), "setup": "SETUP_ERROR LIMIT 400 code 1007 stop; closed; 1 arrived"}
        for key in ("limit", "limit as text", "limit as code", "limit nested")
    },
    "problem": refused("HTTP 400"),
    **{
        f"{status} {where}": passing(f"REDIRECT {status}")
        for status in (301, 302, 307, 308)
        for where in ("host", "http")
    },
    **{f"{status} {where}": passing(f"REDIRECT {status}") for status in (307, 308) for where in ("path", "loop")},
    **{str(status): denied(status) for status in (401, 403, 409, 410)},
    **{str(status): passing(f"HTTP {status}") for status in (500, 503)},
    "429": {**passing("HTTP 429"), **outage("HTTP 429", 23)},
    "429 date": {**passing("HTTP 429"), **outage("HTTP 429", 23)},
    "expired": unsent("TLS"),
    "wrong name": unsent("TLS"),
    "tls 1.0": unsent("TLS"),
    "restarted": {**lost("TRANSPORT", 2), "teardown lasting": "TEARDOWN_ERROR TRANSPORT; 1 arrived"},
    "restarted empty": {
        "setup": "SETUP_ERROR TRANSPORT stop orphan; closed orphan; 1 arrived",
        "license": f"LICENSE_ERROR TRANSPORT stop; TEARDOWN_ERROR {FORGOTTEN.removesuffix(' stop')} orphan; 1 arrived; "
        f"again: {FORGOTTEN}",
        "heartbeat": f"HEARTBEAT_ERROR {FORGOTTEN} orphan; closed orphan; 2 arrived",
        "heartbeat strict": f"HEARTBEAT_ERROR {FORGOTTEN} orphan; closed orphan; 2 arrived",
        "heartbeat lasting": "HEARTBEAT_ERROR TRANSPORT stop, "
        f"HEARTBEAT_ERROR {FORGOTTEN} orphan; closed orphan; 2 arrived",
        "renewal": f"HEARTBEAT_ERROR {FORGOTTEN}; TEARDOWN_ERROR {FORGOTTEN.removesuffix(' stop')} orphan; 2 arrived",
        "renewal strict": f"HEARTBEAT_ERROR {FORGOTTEN}; TEARDOWN_ERROR {FORGOTTEN.removesuffix(' stop')} orphan; "
        f"2 arrived",
        "renewal lasting": "HEARTBEAT_ERROR TRANSPORT stop, "
        f"HEARTBEAT_ERROR {FORGOTTEN}; TEARDOWN_ERROR {FORGOTTEN.removesuffix(' stop')} orphan; 2 arrived",
        "teardown": "closed; 2 arrived",
        "teardown lasting": "TEARDOWN_ERROR TRANSPORT; 1 arrived",
        "certificate": f"answer TRANSPORT; TEARDOWN_ERROR {FORGOTTEN.removesuffix(' stop')}; 1 arrived",
    },
    "slept": {
        "setup": "SETUP_ERROR TIMEOUT stop orphan; closed orphan; 1 arrived, 1 held",
        # When the machine wakes, the library waits one second more for the reply to a request in flight. It sends the
        # overdue heartbeat at once.
        "license": "SESSION_DOUBTFUL, KEPT_ALIVE, LICENSE_ERROR TIMEOUT stop; torn down; 1 arrived",
        "heartbeat": "HEARTBEAT_ERROR TIMEOUT stop, KEPT_ALIVE, RECOVERED; torn down; 2 arrived",
        "heartbeat strict": "HEARTBEAT_ERROR TIMEOUT stop, "
        f"HEARTBEAT_ERROR {FORGOTTEN} orphan; closed orphan; 2 arrived, 1 held",
        "heartbeat lasting": "HEARTBEAT_ERROR TIMEOUT stop, KEPT_ALIVE, RECOVERED, KEPT_ALIVE x2; torn down; 4 arrived",
        # The lease ended before the renewal got its licence. The outage ends when the licence arrives.
        "renewal": "HEARTBEAT_ERROR RENEWAL_MISSED from LOCAL in RENEWAL stop, LICENSE, KEPT_ALIVE, RECOVERED; "
        "torn down; 2 arrived",
        "renewal strict": "HEARTBEAT_ERROR RENEWAL_MISSED from LOCAL in RENEWAL stop, "
        f"HEARTBEAT_ERROR {FORGOTTEN}; TEARDOWN_ERROR {FORGOTTEN.removesuffix(' stop')} orphan; 2 arrived, 1 held",
        "renewal lasting": "HEARTBEAT_ERROR RENEWAL_MISSED from LOCAL in RENEWAL stop, LICENSE, KEPT_ALIVE, RECOVERED"
        f"{', LICENSE, KEPT_ALIVE' * 2}; torn down; 4 arrived",
        "teardown": "torn down; 2 arrived",
        "teardown lasting": "torn down; 2 arrived",
        "certificate": "answer TIMEOUT, SESSION_DOUBTFUL, KEPT_ALIVE; torn down; 1 arrived",
    },
    "proxy 502": unsent("TRANSPORT"),
    "proxy gone": unsent("TRANSPORT"),
    # A renewal goes to the same server as the earlier licence request, so the library already knows the address of this
    # server. While the name server does not answer, the library uses the addresses that it knows.
    "mute names": {**in_flight("TIMEOUT"), "renewal lasting": FINE["renewal lasting"]},
    "first refuses": FINE,
    "first silent": FINE,
    "link down": unsent("TRANSPORT"),
    "cable": in_flight("TIMEOUT"),
    "clock ahead": FINE,
    "clock back": FINE,
}
"""EXPECTED[fault][column] is the expected outcome as text."""

WRONG_LENGTH: Row = {"teardown lasting": "TEARDOWN_ERROR TRANSPORT; 4 arrived"}
"""The HTTP/2 client compares the length of each reply with its Content-Length and drops a reply that does not match. So
the library does not get the HTTP status of such a reply."""

HTTP2: Mapping[str, Row] = {
    # A server that accepts plain http connections may have read the request. A server with TLS reads no request before
    # the handshake.
    "mute": {"setup": EXPECTED["mute tls"]["setup"]},
    "length too long": WRONG_LENGTH,
    "length too short": {**lost("TRANSPORT"), **WRONG_LENGTH},
    # Over HTTP/1.1, the library cannot know whether a reply without a body and without a Content-Length was cut. Over
    # HTTP/2, such a reply is complete.
    "204": {"heartbeat strict": "KEPT_ALIVE; TEARDOWN_ERROR REFUSED 400 code 1006; 1 arrived, 1 held"},
}
"""HTTP2[fault][column] is the expected outcome over HTTP/2, if it differs from the outcome over HTTP/1.1."""

OVER_HTTP2 = ", HTTP/2"
"""In the results over HTTP/2, this text follows the key of the fault."""

AS_ALONE = "1000 as each alone"

AT_ONCE: Mapping[str, str] = {
    "setup": f"{AS_ALONE}; 10 beats beside them, at most 0 ms late",
    "license": f"{AS_ALONE}; 10 beats beside them, at most 0 ms late",
    "heartbeat lasting": f"{AS_ALONE}; 76 beats beside them, at most 100 ms late",
    "renewal lasting": f"{AS_ALONE}; 76 beats beside them, at most 100 ms late",
    "teardown lasting": f"{AS_ALONE}; 42 beats beside them, at most 0 ms late",
    "certificate": f"{AS_ALONE}; 10 beats beside them, at most 0 ms late",
    "heartbeat lasting, silence": f"{AS_ALONE}; 76 beats beside them, at most 100 ms late",
    "teardown lasting, silence": f"{AS_ALONE}; 42 beats beside them, at most 100 ms late",
}
"""The outcomes of a thousand playbacks at the same time. The key is the operation, followed by the name of the fault if
all playbacks have the same fault. A heartbeat may be 100 ms late for this reason: the leases of the thousand sessions
end when the heartbeats of the other playbacks are due, so the last retries use every permit of the origin. While the
origin does not answer, a heartbeat waits at most 100 ms for a permit."""


NOT_OVER_HTTP2 = {("silence", "heartbeat lasting")}
"""The tests do not play these cells over HTTP/2: the library cancels requests while the HTTP/2 server of the tests
still passes them on to the head-end, so the number of requests that arrive varies by one."""


def over_http2(keys: Iterable[str]) -> dict[str, Row]:
    """Returns the expected outcomes of these faults over HTTP/2."""
    rows = {key: {**EXPECTED[key], **HTTP2.get(key, {})} for key in keys}
    return {
        f"{key}{OVER_HTTP2}": {name: cell for name, cell in row.items() if (key, name) not in NOT_OVER_HTTP2}
        for key, row in rows.items()
    }
