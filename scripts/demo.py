#!/usr/bin/env python3
"""Runs `make demo`: an account that may play one stream, and two screens.

    demo.py --player build/examples/usher-player [--library build/libusher.so] [--python .venv/bin/python] [--out DIR]

Act 1  Screen one plays: it sets up a session, gets a licence, sends heartbeats.
Act 2  Meanwhile screen two tries to play: the head-end refuses, and the error text is one that a viewer understands.
Act 3  Screen one has stopped and torn its session down: now screen two plays.
Act 4  A player decodes the clear clip: its frames are the same as those that both screens decoded.

Then the script prints a checklist. Each line comes from the head-end's journal, its session table or a player's
summary. Exit 0: every line is true. Standard library only; --python names the Python that runs the head-end. Every
wait has a time-out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ACCOUNT = "smith-family"
PERIOD_S = 1
START_S, PLAY_S, CONTROL_S = 20.0, 40.0, 10.0


class DemoError(Exception):
    """Raised when the demo cannot continue; the message says why."""


# ---- output ----------------------------------------------------------------------------------------------------------

COLOURED = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def painted(code: int, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if COLOURED else text


def bold(text: str) -> str:
    return painted(1, text)


def dim(text: str) -> str:
    return painted(2, text)


def act(title: str, text: str) -> None:
    print(f"\n{bold(title)}\n{text}\n", flush=True)


def indented(text: str) -> None:
    for line in text.strip("\n").splitlines():
        print(f"   {dim('│')} {line}")
    sys.stdout.flush()


# ---- processes -------------------------------------------------------------------------------------------------------


class Process:
    """A program that the demo started. The output of the program goes to a file, and the demo ends the program by its
    process id."""

    def __init__(self, name: str, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.output_file = folder / f"{name}.txt"
        with self.output_file.open("wb") as output:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
            )

    @property
    def output(self) -> str:
        return self.output_file.read_text(encoding="utf-8", errors="replace")

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    def wait(self, timeout_s: float) -> int:
        try:
            return self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise DemoError(f"{self.name} has not ended within {timeout_s:.0f} s") from None

    def interrupt(self) -> None:
        """Sends SIGINT, as Ctrl-C does."""
        self._child.send_signal(signal.SIGINT)

    def end(self) -> None:
        if not self.running:
            return
        self._child.terminate()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(5)


def wait_until(condition: Callable[[], Any], timeout_s: float, what: str) -> Any:
    """Polls until `condition` returns something true; raises DemoError after the time-out."""
    end = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise DemoError(f"{what}: not within {timeout_s:.0f} s")
        time.sleep(0.05)
    return found


# ---- the head-end ----------------------------------------------------------------------------------------------------


class HeadEnd:
    """The reference head-end as a separate process, queried through its control endpoints."""

    def __init__(self, python: str, folder: Path, environment: dict[str, str], kid: str, key: str, *more: str) -> None:
        ready = folder / "headend.json"
        command = [
            python,
            "-m",
            "usher.testing.headend",
            "--limit",
            "1",
            "--period",
            str(PERIOD_S),
            "--rotation",
            "strict",
        ]
        command += ["--key", f"{kid}:{key}", "--account", ACCOUNT, "--ready-file", str(ready), *more]
        self.process = Process("headend", command, folder, environment)
        try:
            facts = wait_until(lambda: self._read(ready), START_S, "the head-end's start")
        except DemoError as error:
            self.process.end()
            raise DemoError(f"{error}\n{self.process.output}") from None
        self.url = str(facts["url"]).rstrip("/")
        self.ssm_url = str(facts["ssm_url"])
        self.license_url = str(facts["license_urls"]["clearkey"])
        self.license_url_v2 = str(facts["license_urls_v2"]["clearkey"])

    def _read(self, ready: Path) -> dict[str, Any] | None:
        if not self.process.running:
            raise DemoError(f"the head-end ended at once (exit code {self.process.wait(1)})")
        try:
            facts = json.loads(ready.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return facts if isinstance(facts, dict) else None

    def ask(self, what: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/_control/{what}", data=data, headers={"Content-Type": "application/json"}
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=CONTROL_S) as reply:
            answer: dict[str, Any] = json.load(reply)
            return answer

    def token(self) -> str:
        """Gets a new content token from the head-end. Each token is valid for one licence, as with real operators."""
        return str(self.ask("token", {"account": ACCOUNT, "content_id": "clip-1"})["token"])

    def sessions(self) -> list[dict[str, Any]]:
        return list(self.ask("sessions")["sessions"])

    def journal(self) -> list[dict[str, Any]]:
        return list(self.ask("journal")["entries"])


# ---- the screens -----------------------------------------------------------------------------------------------------


class Screen:
    """One run of usher-player."""

    def __init__(self, stage: Stage, run: str, name: str, arguments: list[str], token: str | None = None) -> None:
        self.name = name
        self.summary_file = stage.folder / f"{run}.json"
        command = [stage.player, "--name", name, "--summary-json", str(self.summary_file)]
        command += ["--colour", "always" if COLOURED else "never", *arguments]
        environment = {**stage.environment, **({"USHER_TOKEN": token} if token else {})}
        self.process = Process(run, command, stage.folder, environment)
        stage.processes.append(self.process)
        self.exit_code: int | None = None
        self.summary: dict[str, Any] = {}

    def finish(self) -> Screen:
        self.exit_code = self.process.wait(PLAY_S)
        try:
            self.summary = json.loads(self.summary_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DemoError(f"{self.name} left no summary ({error}); its output:\n{self.process.output}") from None
        indented(self.process.output)
        print(f"   {dim('└ exit code')} {self.exit_code}", flush=True)
        return self

    @property
    def events(self) -> list[str]:
        return [moment["event"] for moment in self.summary["timeline"] if moment["event"]]

    def hash(self, track: str) -> str:
        return str((self.summary.get(track) or {}).get("sha256") or "")

    @property
    def error(self) -> dict[str, Any]:
        return self.summary.get("error") or {}


class Stage:
    """The demo's folder, programs and environment variables, and the processes to end afterwards."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.player = str(arguments.player)
        self.folder = folder
        self.processes: list[Process] = []
        self.environment = dict(os.environ)
        self.environment.pop("USHER_TOKEN", None)
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            self.environment.pop(name, None)  # all connections are on loopback
        source = ROOT / "bindings" / "python" / "src"  # run the head-end of this checkout, even if another is installed
        self.environment["PYTHONPATH"] = ":".join([str(source), *filter(None, [os.environ.get("PYTHONPATH")])])
        if arguments.library:
            library = Path(arguments.library).resolve()
            self.environment["USHER_LIBRARY"] = str(library)
            loaded_from = folder / "lib"  # the loader looks for the soname, whatever the file's name
            loaded_from.mkdir(exist_ok=True)
            for name in ("libusher.so", "libusher.so.0"):
                (loaded_from / name).unlink(missing_ok=True)
                (loaded_from / name).symlink_to(library)
            paths = [str(loaded_from), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
            self.environment["LD_LIBRARY_PATH"] = ":".join(paths)

    def end(self) -> None:
        for process in reversed(self.processes):
            process.end()


# ---- the checklist ---------------------------------------------------------------------------------------------------


class Checklist:
    """The checklist: prints each claim of the demo with the evidence, and counts those that are false."""

    def __init__(self) -> None:
        self.failed = 0

    def line(self, seen: bool, claim: str, evidence: object) -> None:
        self.failed += not seen
        mark = painted(32, "✓") if seen else painted(31, "✗")
        print(f"   {mark} {claim}  {dim(f'[{evidence}]')}")


def order_is_right(routes: list[str]) -> bool:
    """True if the requests are set-up, licence, heartbeats, teardown, in this order, and no others."""
    beats = routes[2:-1]
    return (
        routes[:2] == ["setup", "license"]
        and routes[-1:] == ["teardown"]
        and len(beats) >= 1
        and set(beats) == {"heartbeat"}
    )


def steps(routes: list[str]) -> str:
    beats = routes.count("heartbeat")
    told = [route for index, route in enumerate(routes) if route != "heartbeat" or "heartbeat" not in routes[:index]]
    return " → ".join(f"heartbeat x{beats}" if route == "heartbeat" else route for route in told)


def check(
    head_end: HeadEnd, one: Screen, refused: Screen, two: Screen, clear: Screen, running_when_refused: bool
) -> bool:
    journal, table = head_end.journal(), head_end.sessions()
    violations = head_end.ask("violations")["violations"]
    setups = [entry for entry in journal if entry["route"] == "setup"]
    granted = [entry for entry in setups if entry["status"] == 200]
    limit = [entry for entry in setups if entry["error_code"] == 1007]
    active = [session for session in table if session["state"] == "active"]
    list_ = Checklist()
    print(f"\n{bold('What was seen')}\n")

    for screen, entry in zip((one, two), granted, strict=False):
        routes = [other["route"] for other in journal if other["session"] == entry["session"]]
        statuses = {other["status"] for other in journal if other["session"] == entry["session"]}
        list_.line(
            order_is_right(routes),
            f"{screen.name}: set-up, licence, heartbeats, teardown, in this order",
            f"journal: {steps(routes)}",
        )
        list_.line(
            statuses == {200}, f"{screen.name}: the head-end granted every request", f"journal: HTTP {sorted(statuses)}"
        )
        beats = routes.count("heartbeat"), screen.summary.get("beats")
        list_.line(
            beats[0] == beats[1],
            f"{screen.name}: player and head-end count the same heartbeats",
            f"player {beats[1]}, head-end {beats[0]}",
        )
        list_.line(
            screen.events.count("SESSION_ENDED") == 1 and screen.events[-1:] == ["PLAYBACK_CLOSED"],
            f"{screen.name}: its last events report the end of its session, then that it is closed",
            f"summary: … {', '.join(screen.events[-2:])}",
        )
        list_.line(screen.exit_code == 0, f"{screen.name}: played the whole clip", f"exit code {screen.exit_code}")
    list_.line(
        len(granted) == 2,
        "the head-end granted two sessions in total",
        f"journal: {len(granted)} set-ups with HTTP 200",
    )

    facts = f"journal: {len(limit)} x HTTP {limit[0]['status']}, code 1007" if limit else "journal: none"
    list_.line(len(limit) == 1, f"{refused.name}, act 2: the head-end refused one set-up for the limit", facts)
    list_.line(
        running_when_refused, "screen one was still playing at that time", "its process ran, its session was active"
    )
    list_.line(
        refused.exit_code == 3,
        f"{refused.name}, act 2: ended with the exit code for a refusal",
        f"exit code {refused.exit_code}",
    )
    list_.line(
        refused.error.get("service_code") == 1007
        and refused.error.get("status_name") == "USHER_E_LIMIT"
        and bool(refused.error.get("summary")),
        f"{refused.name}, act 2: printed the reason in plain words",
        f"summary: “{refused.error.get('summary', '')}”",
    )
    licences = [entry for entry in journal if entry["route"] == "license"]
    nothing = (
        len(licences) == len(granted)
        and refused.summary.get("licence_size") == 0
        and refused.summary.get("video") is None
    )
    asked = f"journal: {len(licences)} licence requests for {len(granted)} sessions"
    facts = f"summary: {refused.summary.get('licence_size')} bytes; {asked}"
    list_.line(nothing, f"{refused.name}, act 2: asked for no licence, decoded nothing", facts)
    ends = [entry["at_ms"] for entry in journal if entry["route"] == "teardown"]
    in_turn = len(granted) == 2 and bool(ends) and ends[0] <= granted[1]["at_ms"]
    list_.line(in_turn, "screen two got its session after screen one's was torn down", "journal: order of arrival")

    for track, what in (("video", "picture"), ("audio", "sound")):
        hashes = [clear.hash(track), one.hash(track), two.hash(track)]
        list_.line(
            hashes[0] != "" and len(set(hashes)) == 1,
            f"{what}: both screens decoded exactly the clear clip",
            f"sha256 {hashes[0][:16]}…",
        )
    states = ", ".join(session["state"] for session in table)
    list_.line(not active and len(table) == 2, "no session is held at the end", f"session table: {states}")
    claim = "the head-end found no violation: no stale token, no late heartbeat, nothing after teardown"
    list_.line(not violations, claim, f"violations: {len(violations)}")
    for violation in violations:
        print(f"       {violation}")
    return list_.failed == 0


# ---- the story -------------------------------------------------------------------------------------------------------


def make_media(folder: Path, *more: str) -> dict[str, Any]:
    made = subprocess.run(
        [str(ROOT / "scripts" / "make-media.sh"), str(folder), *more],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if made.returncode != 0:
        raise DemoError(f"make-media.sh failed:\n{made.stdout}{made.stderr}")
    media: dict[str, Any] = json.loads((folder / "media.json").read_text(encoding="utf-8"))
    return media


def tell(stage: Stage, python: str) -> bool:
    media = make_media(stage.folder)
    clip = str(stage.folder / media["encrypted"])
    head_end = HeadEnd(python, stage.folder, stage.environment, media["kid"], media["key"])
    stage.processes.append(head_end.process)
    print(f"{bold('usher demo')}: account “{ACCOUNT}” may play one stream at a time; it has two screens.")
    print(f"   head-end   {head_end.url}   {dim('(journal: ' + head_end.url + '/_control/journal?text=true)')}")
    print(f"   clip       {media['seconds']} s, encrypted with CENC AES-CTR, key id {media['kid']}")
    print(f"   files      {stage.folder}", flush=True)
    where = ["--license-url", head_end.license_url, "--ssm-url", head_end.ssm_url]

    act(
        "Act 1. Screen one plays",
        "The living room starts the clip. Until it ends, its heartbeats hold the account's only stream.",
    )
    one = Screen(stage, "screen-one", "living room", [*where, "--tag", "1", "--speed", "2", clip], head_end.token())
    held = wait_until(
        lambda: (
            not one.process.running or [s for s in head_end.sessions() if s["state"] == "active" and s["beats"] >= 1]
        ),
        PLAY_S,
        "the first heartbeat of screen one",
    )
    if held is True:
        one.finish()
        raise DemoError("screen one ended before its first heartbeat")
    print(f"   {painted(32, '▶')} playing; the head-end holds 1 session and has had its first heartbeat", flush=True)

    act("Act 2. Screen two wants to play too", "The bedroom starts the same clip, while the living room still plays.")
    refused = Screen(stage, "screen-two-refused", "bedroom", [*where, "--tag", "2", clip], head_end.token()).finish()
    still = one.process.running and any(session["state"] == "active" for session in head_end.sessions())

    act("      Meanwhile, screen one", "It was not disturbed, and reached the end of the clip.")
    one.finish()

    act("Act 3. Screen two tries again", "The living room has stopped and given its session back.")
    two = Screen(
        stage, "screen-two", "bedroom", [*where, "--tag", "3", "--speed", "4", clip], head_end.token()
    ).finish()

    act("Act 4. The proof", "The clip as it was before encryption, decoded the same way: no key, no session.")
    clear = Screen(stage, "clear", "reference", ["--clear", str(stage.folder / media["clear"])]).finish()
    print()
    for name, screen in (("clear clip", clear), ("living room", one), ("bedroom", two)):
        same = screen.hash("video") == clear.hash("video") != ""
        print(f"   {name:12} {painted(32 if same else 31, screen.hash('video') or '(no frames)')}")

    act("The head-end's journal", "Every request that arrived, tokens shortened.")
    indented(str(head_end.ask("journal")["text"]))
    return check(head_end, one, refused, two, clear, still)


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
    arguments = parser.parse_args(argv)
    if not arguments.player or not os.access(arguments.player, os.X_OK):
        parser.error(f"--player: no such program: {arguments.player}")
    return arguments


def main(argv: list[str] | None = None) -> int:
    arguments = arguments_of(argv)
    if isinstance(sys.stdout.encoding, str) and "utf" not in sys.stdout.encoding.lower():
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    started = time.monotonic()
    folder = Path(arguments.out or tempfile.mkdtemp(prefix="usher-demo-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    stage = Stage(arguments, folder)
    try:
        good = tell(stage, arguments.python)
    except (DemoError, OSError, subprocess.TimeoutExpired) as error:
        print(f"\n{painted(31, 'The demo had to stop.')} {error}", flush=True)
        good = False
    finally:
        stage.end()
        if arguments.out is None:
            shutil.rmtree(folder, ignore_errors=True)
    verdict = painted(32, "All of it was seen.") if good else painted(31, "Not all of it was seen.")
    print(f"\n{bold(verdict)} {dim(f'{time.monotonic() - started:.1f} s')}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
