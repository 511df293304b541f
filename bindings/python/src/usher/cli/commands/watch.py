"""``usher watch``: the sessions of a reference head-end, live."""

from __future__ import annotations

import argparse
import os
import queue
import threading
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from ..exits import CommandError, Exit
from ..interrupts import Interrupts
from ..target import ready_file
from ..watch.feed import Feed, Gone, State

if TYPE_CHECKING:
    from ..output import Output

DESCRIPTION = """\
Shows the accounts, sessions and newest requests of a reference head-end (`usher headend`), as its page does. Tokens are
shortened. Ctrl-C ends it. If the head-end stops, the command keeps its last state and connects again."""

EXAMPLES = """\
examples:
  usher watch http://127.0.0.1:8080
  usher watch --ready-file headend.json --account alice
  usher watch http://127.0.0.1:8080 --once --json
"""

_AGAIN_S = 1.0
_FRAME_S = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", nargs="?", help="the page of the head-end, such as http://127.0.0.1:8080")
    parser.add_argument(
        "--ready-file",
        metavar="FILE",
        help="take URL and control token from the file that `usher headend --ready-file` has written",
    )
    parser.add_argument(
        "--control-token",
        metavar="TOKEN",
        help="the head-end's control token; by default the value of the environment variable USHER_CONTROL_TOKEN",
    )
    parser.add_argument("--account", metavar="NAME", help="show only the sessions and requests of this account")
    parser.add_argument("--once", action="store_true", help="print the state once, and end")


def run(options: argparse.Namespace, out: Output) -> int:
    ready = ready_file(options.ready_file) if options.ready_file else {}
    url = options.url or ready.get("url")
    if not url or not str(url).startswith(("http://", "https://")):
        raise CommandError("give the URL of the head-end's page, http://HOST:PORT, or --ready-file")
    token = options.control_token or os.environ.get("USHER_CONTROL_TOKEN") or ready.get("control_token")
    feed = Feed(str(url), token, options.account)
    if out.as_json or options.once:
        return _print(feed, options, out)
    with suppress(KeyboardInterrupt):
        _show(feed, options, out)
    return Exit.OK


def _print(feed: Feed, options: argparse.Namespace, out: Output) -> int:
    from ..watch.screen import screen

    try:
        for name, value in feed.events():
            if out.as_json:
                out.line({"event": name, **value})
            else:
                state = State()
                state.take(name, value)
                out.console.print(screen(state))
            if options.once:
                break
    except Gone as gone:
        raise CommandError(f"the head-end does not answer: {gone}", Exit.UNREACHABLE) from gone
    except KeyboardInterrupt:
        if options.once:
            raise
    return Exit.OK


def _show(feed: Feed, options: argparse.Namespace, out: Output) -> None:
    from rich.live import Live

    from ..watch.screen import screen

    news: queue.Queue[tuple[str, dict[str, Any]] | Exception] = queue.Queue()
    threading.Thread(target=_follow, args=(feed, news), name="usher-watch", daemon=True).start()
    state, was_there = State(), False
    on_terminal = out.console.is_terminal and not out.console.is_dumb_terminal  # Live cannot use a dumb terminal
    # Python ignores exceptions in some code, such as finalizers, so a KeyboardInterrupt could get lost. Therefore
    # `Interrupts` raises no exception at the first Ctrl-C, but sets `pressed`.
    with (
        Interrupts() as interrupts,
        Live(console=out.console, auto_refresh=False, screen=True) if on_terminal else nullcontext() as live,
    ):
        while not interrupts.pressed.is_set():
            changed = False
            with suppress(queue.Empty):
                item = news.get(timeout=_FRAME_S)
                while True:
                    changed = True
                    if isinstance(item, Gone) and was_there:
                        state.stopped = f"connecting again: {item}"
                    elif isinstance(item, Gone):
                        raise CommandError(f"the head-end does not answer: {item}", Exit.UNREACHABLE)
                    elif isinstance(item, Exception):
                        raise item
                    else:
                        was_there = True
                        state.take(*item)
                    item = news.get_nowait()
            if live is not None:
                live.update(screen(state), refresh=True)
            elif changed:  # a file or a pipe gets each change, one below the other
                out.console.print(screen(state))
                out.console.print()


def _follow(feed: Feed, news: queue.Queue[tuple[str, dict[str, Any]] | Exception]) -> None:
    """Puts the events of the feed into the queue. When the feed has ended, connects again."""
    while True:
        try:
            for event in feed.events():
                news.put(event)
            news.put(Gone("the head-end has stopped"))
        except Gone as gone:
            news.put(gone)
        except Exception as error:  # the main thread raises it
            news.put(error)
            return
        time.sleep(_AGAIN_S)
