#!/usr/bin/env python3
"""Runs `make demo`: an account that may play one stream, and two screens.

    demo.py --player build/examples/usher-player [--library build/libusher.so] [--python .venv/bin/python]
            [--out DIR] [--keep]

Act 1  Screen one plays: it sets up a session, gets a licence, sends heartbeats.
Act 2  Meanwhile screen two tries to play: the head-end refuses, and the error text is one that a viewer understands.
Act 3  Screen one has stopped and torn its session down: now screen two plays.
Act 4  A player decodes the clear clip: its frames are the same as those that both screens decoded.

Then the script prints a checklist. Each line comes from the head-end's journal, its session table or a player's
summary. Exit 0: every line is true. Standard library only; --python names the Python that runs the head-end. Every
wait has a time-out. No line is wider than 100 columns, and a progress line follows each second without output.
With --keep the files stay, and the head-end's page runs until Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from demo_checklist import check
from demo_output import OUT
from demo_stage import ACCOUNT, PLAY_S, DemoError, HeadEnd, Screen, Stage, make_media, wait_until


def tell(stage: Stage, python: str) -> tuple[bool, HeadEnd]:
    """Tells the story; returns whether every line of the checklist is true, and the head-end, which still runs."""
    OUT.say(f"{OUT.bold('usher demo')}: account “{ACCOUNT}” may play one stream at a time; it has two screens.")
    media = make_media(stage.folder, progress=lambda: "ffmpeg makes the clip and encrypts it")
    clip = str(stage.folder / media["encrypted"])
    head_end = HeadEnd(
        python, stage.folder, stage.environment, media["kid"], media["key"], progress=lambda: "the head-end starts"
    )
    stage.processes.append(head_end.process)
    OUT.say(f"   head-end   {head_end.page_url}   {OUT.dim('(a live page: open it to watch)')}")
    OUT.say(f"   clip       {media['seconds']} s, encrypted with CENC AES-CTR, key id {media['kid']}")
    OUT.say(f"   files      {stage.folder}")
    where = ["--license-url", head_end.license_url, "--ssm-url", head_end.ssm_url]

    def screen(run: str, name: str, *arguments: str) -> Screen:
        return Screen(
            stage, run, name, [*where, *arguments, clip], head_end.token(), lambda: f"{name}: {head_end.progress()}"
        )

    OUT.act(
        "Act 1. Screen one plays",
        "The living room starts the clip. Until it ends, its heartbeats hold the account's only stream.",
    )
    one = screen("screen-one", "living room", "--tag", "1", "--speed", "2")
    held = wait_until(
        lambda: (
            not one.process.running or [s for s in head_end.sessions() if s["state"] == "active" and s["beats"] >= 1]
        ),
        PLAY_S,
        "the first heartbeat of screen one",
        lambda: f"living room: {head_end.progress()}",
    )
    if held is True:
        one.finish()
        raise DemoError("screen one ended before its first heartbeat")
    OUT.say(f"   {OUT.good('▶')} playing; the head-end holds 1 session and has had its first heartbeat")

    OUT.act(
        "Act 2. Screen two wants to play too", "The bedroom starts the same clip, while the living room still plays."
    )
    refused = screen("screen-two-refused", "bedroom", "--tag", "2").finish()
    still = one.process.running and any(session["state"] == "active" for session in head_end.sessions())

    OUT.act("      Meanwhile, screen one", "It was not disturbed, and reached the end of the clip.")
    one.finish()

    OUT.act("Act 3. Screen two tries again", "The living room has stopped and given its session back.")
    two = screen("screen-two", "bedroom", "--tag", "3", "--speed", "4").finish()

    OUT.act("Act 4. The proof", "The clip as it was before encryption, decoded the same way: no key, no session.")
    clear = Screen(
        stage,
        "clear",
        "reference",
        ["--clear", str(stage.folder / media["clear"])],
        progress=lambda: "the player decodes the clear clip",
    ).finish()
    OUT.say()
    for name, played in (("clear clip", clear), ("living room", one), ("bedroom", two)):
        same = played.hash("video") == clear.hash("video") != ""
        told = played.hash("video") or "(no frames)"
        OUT.say(f"   {name:12} {OUT.good(told) if same else OUT.bad(told)}")

    OUT.act("The head-end's journal", "Every request that arrived, tokens shortened.")
    OUT.quote(str(head_end.ask("journal")["text"]))
    return check(head_end, one, refused, two, clear, still), head_end


def keep_open(stage: Stage, head_end: HeadEnd) -> None:
    """Keeps the head-end running until Ctrl-C or SIGTERM, or until it ends."""
    OUT.say(f"\nThe head-end still runs; its page shows what happened: {head_end.page_url}")
    OUT.say(f"Files: {stage.folder} (clips, and for each screen its output and summary). They stay.")
    OUT.say("Ctrl-C ends the head-end.")
    try:
        while head_end.process.running:
            time.sleep(0.1)
        OUT.say("The head-end has ended.")
    except KeyboardInterrupt:
        OUT.say()


def arguments_of(argv: list[str] | None) -> argparse.Namespace:
    environment = os.environ
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--player", default=environment.get("USHER_PLAYER"), help="the usher-player program (USHER_PLAYER)"
    )
    parser.add_argument(
        "--library", default=environment.get("USHER_LIBRARY"), help="libusher.so of a build tree (USHER_LIBRARY)"
    )
    parser.add_argument(
        "--python",
        default=environment.get("USHER_PYTHON", sys.executable),
        help="Python with libusher[headend] (USHER_PYTHON)",
    )
    parser.add_argument(
        "--out", type=Path, help="keep clip, outputs and summaries there; default: a folder that is removed afterwards"
    )
    parser.add_argument("--keep", action="store_true", help="keep the files, and the head-end until Ctrl-C (KEEP=1)")
    arguments = parser.parse_args(argv)
    if not arguments.player or not os.access(arguments.player, os.X_OK):
        parser.error(f"--player: no such program: {arguments.player}")
    return arguments


def end(*_: object) -> None:
    """Handles SIGTERM like Ctrl-C, so that the demo ends its programs."""
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    arguments = arguments_of(argv)
    if isinstance(sys.stdout.encoding, str) and "utf" not in sys.stdout.encoding.lower():
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, end)
    started = time.monotonic()
    folder = Path(arguments.out or tempfile.mkdtemp(prefix="usher-demo-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    stage = Stage(arguments, folder)
    try:
        good, head_end = tell(stage, arguments.python)
        verdict = OUT.good("All of it was seen.") if good else OUT.bad("Not all of it was seen.")
        OUT.say(f"\n{OUT.bold(verdict)} {OUT.dim(f'{time.monotonic() - started:.1f} s')}")
        if arguments.keep:
            keep_open(stage, head_end)
        else:
            OUT.say(OUT.dim("make demo KEEP=1 keeps the files, and the head-end with its live page."))
    except (DemoError, OSError) as error:
        OUT.say(f"\n{OUT.bad('The demo had to stop.')} {error}")
        return 1
    except KeyboardInterrupt:
        OUT.say("\nInterrupted.")
        return 130
    finally:
        stage.end()
        if arguments.out is None and not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
