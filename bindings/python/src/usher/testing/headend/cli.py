"""``usher-headend``: the reference head-end as a program."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from . import overrides, summary
from .config import (
    DEFAULT_ACCOUNT,
    DEFAULT_CONTENT_ID,
    DEFAULT_TENANT,
    KEY_SYSTEMS,
    HeadEndConfig,
    Rotation,
    key_system_name,
)
from .server import HeadEnd
from .workers import Key, Plan, Workers

ABOUT = """\
A reference head-end for the SSM v1 session protocol: set-up, heartbeats, enforced renewals, teardown,
operator kills, licences of SSP V1 and V2 for FairPlay, Widevine, PlayReady and Clear Key, a FairPlay key server,
ExpressPlay and its entitlement server. It counts concurrent streams, rotates tokens, lets sessions without
keep-alives expire, and keeps a journal of every request.
"""

EXAMPLES = """\
examples:
  usher-headend --limit 1 --period 10 --account alice --account bob
  usher-headend --key 00112233445566778899aabbccddeeff:ffeeddccbbaa99887766554433221100
  usher-headend --clock manual --rotation strict --ready-file /tmp/headend.json
  usher-headend --enforced fairplay --set v2.token_field=session.token --set v2.period_field=null

the page: http://HOST:PORT/ shows sessions, requests, clock and faults live.

control endpoints (JSON), for tests in any language:
  GET  /_control/state         clock, held requests, active sessions, requests by route
  GET  /_control/journal       every request; ?route= &account= &session= &after=N filter,
                               ?min=N&timeout_ms=T waits for N requests, ?text=true is a
                               plain-text table
  GET  /_control/sessions      the session table; ?account= &state=
  GET  /_control/violations    protocol violations of clients; ?ignore=kind,kind
  POST /_control/advance       {"ms": 60000}                    manual clock only
  POST /_control/faults        {"route": "heartbeat", "fault": {"kind": "status", "status": 503}}
  POST /_control/release       {}                               lets stalled requests continue
  POST /_control/token         {"account": "alice", "max_sessions": 1}
  POST /_control/key           {"kid": "<hex>", "key": "<hex>", "content_id": "movie"}
  POST /_control/kill          {"account": "alice"}
  POST /_control/revoke        {}                               refuses all existing content tokens
  POST /_control/device        {"device": "tv", "account": "alice"}
  POST /_control/rights        {"account": "alice", "content_ids": ["movie"], "max_sessions": 1}
  POST /_control/entitlement   {"content_id": "movie", "allowed": false, "text": "not in your package"}
  GET  /_control/events        the data of the live page, as server-sent events

After SIGTERM or SIGINT the program prints a summary, and ends with exit status 0. Its keys and tokens are for tests, so
run the program on loopback or in a lab, never as a service.
"""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="usher-headend",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(made)
    made.add_argument("--json", action="store_true", help="print one line of JSON at the start, and one at the end")
    return made


def add_arguments(made: argparse.ArgumentParser) -> None:
    """Adds the options of the head-end to a parser."""
    listen = made.add_argument_group("listening")
    listen.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (%(default)s)")
    listen.add_argument(
        "--host-name",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that URLs of the page and of the control endpoints may have; repeat for more",
    )
    listen.add_argument(
        "--control-token",
        metavar="TOKEN",
        help="the token that clients of the page and of the control endpoints must send; by default they need none if "
        "the head-end listens on loopback; otherwise the head-end makes a token and prints it",
    )
    listen.add_argument(
        "--journal-tokens", action="store_true", help="show whole tokens in the journal of the control endpoints"
    )
    listen.add_argument("--port", type=_port, default=0, metavar="N", help="TCP port, 0 for a free one (%(default)s)")
    listen.add_argument("--tls", action="store_true", help="serve HTTPS with its own certificate authority")
    listen.add_argument("--tenant", default=DEFAULT_TENANT, metavar="NAME", help="tenant in every path (%(default)s)")
    listen.add_argument(
        "--ready-file",
        type=Path,
        metavar="PATH",
        help="write URLs, tokens, CA file and process id to this file when the head-end listens",
    )
    rules = made.add_argument_group("sessions")
    rules.add_argument("--limit", type=int, default=2, metavar="N", help="concurrent streams per account (%(default)s)")
    rules.add_argument(
        "--period", type=float, default=60.0, metavar="S", help="seconds between keep-alives (%(default)g)"
    )
    rules.add_argument(
        "--grace", type=float, default=2.0, metavar="X", help="a session expires after X periods (%(default)g)"
    )
    rules.add_argument(
        "--rotation",
        choices=[name.replace("_", "-") for name in get_args(Rotation)],
        default="accept-previous",
        help="which session tokens the head-end accepts. strict: only the newest; accept-previous: also the previous "
        "one; none: one token, which never changes (%(default)s)",
    )
    rules.add_argument(
        "--enforced",
        nargs="+",
        action="extend",
        default=[],
        choices=KEY_SYSTEMS,
        metavar="KEYSYSTEM",
        help=f"key systems for which licence renewals keep the session alive: {', '.join(KEY_SYSTEMS)}",
    )
    rules.add_argument(
        "--clock",
        choices=["system", "manual"],
        default="system",
        help="real time, or a clock that only /_control/advance moves",
    )
    rules.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="change a setting of HeadEndConfig; VALUE is JSON or text: v2.token_field=session.token; repeat for more",
    )
    scale = made.add_argument_group("several processes")
    scale.add_argument(
        "--redis",
        metavar="URL",
        help="keep the session table in this Redis server, redis://HOST:PORT/DATABASE; head-ends with the same server "
        "and tenant share their sessions",
    )
    scale.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="how many processes listen on the port (%(default)s); more than one process needs --redis",
    )
    content = made.add_argument_group("content and accounts")
    content.add_argument(
        "--key",
        type=_key,
        action="append",
        default=[],
        metavar="KID:KEY[:ID]",
        help="a content key: key id and key, 32 hex digits each; for the content ID, or without ID for all contents; "
        "repeat for more",
    )
    content.add_argument(
        "--key-file",
        type=Path,
        metavar="PATH",
        help="a file of content keys: KID:KEY[:ID] in each line; # begins a comment",
    )
    content.add_argument(
        "--media",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="read content keys from a media.json; repeat for more",
    )
    content.add_argument(
        "--account",
        action="append",
        default=[],
        metavar="NAME",
        help="print a content token of this account; repeat for more",
    )
    content.add_argument(
        "--content-id",
        default=DEFAULT_CONTENT_ID,
        metavar="ID",
        help="the content id in the printed tokens (%(default)s)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The program ``usher-headend``; see serve()."""
    options = parser().parse_args(argv)
    return serve(options, as_json=options.json)


def serve(options: argparse.Namespace, *, as_json: bool) -> int:
    """Runs until SIGTERM or SIGINT.

    Returns:
        0; 2 for invalid settings or an address that is not available.
    """
    ending = {signal.SIGTERM, signal.SIGINT}
    try:
        keys = [*options.key, *(_read_keys(options.key_file) if options.key_file is not None else [])]
        plan = Plan(_config(options), keys, options.media)
        head_end = plan.head_end()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ending)
        try:
            with head_end, Workers(options.workers - 1, plan, head_end.port):
                ready = _ready(head_end)
                if options.ready_file is not None:
                    _write_atomically(options.ready_file, json.dumps(ready, indent=2) + "\n")
                summary.print_warning(head_end, sys.stderr)
                if as_json:
                    print(json.dumps(ready), flush=True)
                else:
                    summary.print_start(ready, sys.stdout)
                signal.sigwait(ending)
        finally:
            if options.ready_file is not None:
                options.ready_file.unlink(missing_ok=True)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except (OSError, ValueError) as error:
        print(f"usher-headend: {error}", file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps(summary.totals(head_end)), flush=True)
    else:
        summary.print_end(head_end, sys.stdout)
    return 0


def _config(options: argparse.Namespace) -> HeadEndConfig:
    _check_workers(options)
    config = HeadEndConfig(
        tenant=options.tenant,
        host=options.host,
        host_names=tuple(options.host_name),
        control_token=options.control_token,
        journal_tokens=options.journal_tokens,
        port=options.port,
        tls=options.tls,
        clock=options.clock,
        accounts=tuple(options.account or (DEFAULT_ACCOUNT,)),
        content_id=options.content_id,
        limit=options.limit,
        period_s=options.period,
        grace=options.grace,
        token_rotation=options.rotation.replace("-", "_"),
        enforced=frozenset(options.enforced),
        journal_limit=100_000,
        sessions_url=options.redis,
        reuse_port=options.workers > 1,
    )
    return overrides.apply(config, options.settings)


def _check_workers(options: argparse.Namespace) -> None:
    """Raises ValueError if the processes of ``--workers`` could not work together."""
    if options.workers < 1:
        raise ValueError("--workers: give at least 1")
    if options.workers == 1:
        return
    if options.redis is None:
        raise ValueError("--workers: several processes need a session table in Redis; give --redis")
    if options.tls or options.clock == "manual":
        raise ValueError(
            "--workers: each process has a certificate and a clock of its own, so not --tls, --clock manual"
        )


def _port(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port: give a number from 0 to 65535")
    return number


def _key(text: str) -> Key:
    kid, _, rest = text.strip().partition(":")
    key, _, content_id = rest.partition(":")
    try:
        pair = bytes.fromhex(kid.replace("-", "")), bytes.fromhex(key)
    except ValueError:
        pair = b"", b""
    if len(pair[0]) != 16 or len(pair[1]) != 16:
        raise argparse.ArgumentTypeError("a key is KID:KEY, 32 hex digits each, and perhaps :CONTENT-ID")
    return *pair, content_id or None


def _read_keys(path: Path) -> list[Key]:
    found: list[Key] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            found.append(_key(text))
        except argparse.ArgumentTypeError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    return found


def _ready(head_end: HeadEnd) -> dict[str, Any]:
    config = head_end.config
    return {
        "pid": os.getpid(),
        "url": head_end.url,
        "port": head_end.port,
        "tenant": config.tenant,
        "tenant_url": head_end.tenant_url,
        "ssm_url": head_end.ssm_url,
        "license_urls": {key_system: head_end.license_url(key_system) for key_system in KEY_SYSTEMS},
        "license_urls_v2": {key_system: head_end.license_url(key_system, "v2") for key_system in KEY_SYSTEMS},
        "certificate_urls": {
            "fairplay": head_end.certificate_url("fairplay"),
            "widevine": head_end.certificate_url("widevine"),
        },
        "fps_url": head_end.fps_url,
        "fps_certificate_url": head_end.fps_certificate_url,
        "rights_url": head_end.rights_url,
        "entitlement_url": head_end.entitlement_url,
        "control_url": head_end.control_url,
        "control_token": head_end.control_token,
        "page_url": head_end.page_url,
        "ca_file": None if head_end.ca_file is None else str(head_end.ca_file),
        "clock": config.clock,
        "limit": config.limit,
        "period_s": config.period_s,
        "grace": config.grace,
        "token_rotation": config.token_rotation,
        "enforced": sorted(map(key_system_name, config.enforced)),
        "keys": len(head_end.keys),
        "key_ids": [kid.hex() for kid in head_end.keys.ids()],
        "tokens": {account: head_end.content_token(account, config.content_id) for account in config.accounts},
        "operator_token": head_end.operator_token(),
    }


def _write_atomically(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
