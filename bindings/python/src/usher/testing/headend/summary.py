"""What ``usher-headend`` prints at its start and at its end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TextIO

from .network import guard
from .state.sessions import SessionState

if TYPE_CHECKING:
    from .server import HeadEnd


class _Paint:
    """Makes text bold or dim on a terminal, unless NO_COLOR is set; otherwise returns the text unchanged."""

    def __init__(self, stream: TextIO) -> None:
        self._on = stream.isatty() and "NO_COLOR" not in os.environ

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._on else text

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._on else text


def totals(head_end: HeadEnd) -> dict[str, Any]:
    """Returns how many sessions and requests of each kind the head-end had, and the violations of its clients."""
    sessions = head_end.sessions.all()
    return {
        "sessions": {state.value: sum(1 for session in sessions if session.state is state) for state in SessionState},
        "requests": head_end.journal.counts(),
        "violations": [str(violation) for violation in head_end.violations()],
    }


def print_start(ready: dict[str, Any], stream: TextIO) -> None:
    paint = _Paint(stream)
    enforced = ", ".join(ready["enforced"]) or "none"
    rows = [
        ("page", ready["page_url"]),
        ("sessions", ready["ssm_url"]),
        *((f"{name} licences", url) for name, url in ready["license_urls"].items()),
        *((f"{name} certificate", url) for name, url in ready["certificate_urls"].items()),
        ("key server", ready["fps_url"]),
        ("its certificate", ready["fps_certificate_url"]),
        ("ExpressPlay licences", ready["rights_url"]),
        ("entitlements", ready["entitlement_url"]),
        ("control", ready["control_url"]),
    ]
    if ready["control_token"] is not None:
        rows.append(("control token", ready["control_token"]))
    if ready["ca_file"] is not None:
        rows.append(("CA file", ready["ca_file"]))
    streams = "1 stream" if ready["limit"] == 1 else f"{ready['limit']} streams"
    rules = (
        f"{streams} per account, keep-alive every {ready['period_s']:g} s, "
        f"expiry after {ready['period_s'] * ready['grace']:g} s"
    )
    rows += [
        ("rules", rules),
        ("tokens", f"rotation {ready['token_rotation'].replace('_', ' ')}; enforced: {enforced}"),
        ("clock", ready["clock"]),
        ("keys", "1 content key" if ready["keys"] == 1 else f"{ready['keys']} content keys"),
    ]
    print(paint.bold(f"usher-headend listening on {ready['url']} (pid {ready['pid']})"), file=stream)
    for name, value in rows:
        print(f"  {paint.dim(f'{name:<22}')} {value}", file=stream)
    print(file=stream)
    for account, token in ready["tokens"].items():
        print(paint.bold(f"content token of {account}"), file=stream)
        print(token, file=stream)
    stream.flush()


def print_warning(head_end: HeadEnd, stream: TextIO) -> None:
    """If other machines can connect to the head-end, warns that players need no login."""
    if not guard.needs_token(head_end.config.host):
        return
    readable = "" if head_end.config.tls else ", and without --tls everybody on the network can read their requests"
    print(
        f"usher-headend: warning: other machines can connect to {head_end.url}; its services for players have no "
        f"login{readable}; listen on this address only in a lab",
        file=stream,
        flush=True,
    )


def print_end(head_end: HeadEnd, stream: TextIO) -> None:
    paint = _Paint(stream)
    found = totals(head_end)
    print(file=stream)
    print(paint.bold("sessions"), file=stream)
    for state, count in found["sessions"].items():
        name = "still held" if state == SessionState.ACTIVE.value else state.replace("_", " ")
        print(f"  {name:<18} {count:>7}", file=stream)
    print(paint.bold("requests"), file=stream)
    for route, count in found["requests"].items():
        print(f"  {route:<18} {count:>7}", file=stream)
    print(f"  {'all':<18} {sum(found['requests'].values()):>7}", file=stream)
    violations = found["violations"]
    print(paint.bold(f"violations {len(violations)}"), file=stream)
    for violation in violations[:20]:
        print(f"  {violation}", file=stream)
    if len(violations) > 20:
        print(f"  … and {len(violations) - 20} more", file=stream)
    stream.flush()
