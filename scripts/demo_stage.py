"""The programs of `make demo`: the head-end, the players on screens, and the clip that they play. The tests of the
examples use this module as well. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demo_output import OUT

ROOT = Path(__file__).resolve().parent.parent
ACCOUNT = "smith-family"
PERIOD_S = 1
START_S, PLAY_S, CONTROL_S, MEDIA_S = 20.0, 40.0, 10.0, 60.0


Progress = Callable[[], str]
"""The type of a function that returns one line, which says what the demo waits for."""


class DemoError(Exception):
    """Raised when the demo cannot continue; the message says why."""


# ---- processes -------------------------------------------------------------------------------------------------------


class Process:
    """A program that the demo started. The output of the program goes to a file, and the demo ends the program by its
    process id."""

    def __init__(self, name: str, command: list[str], folder: Path, environment: dict[str, str] | None) -> None:
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

    def wait(self, timeout_s: float, progress: Progress | None = None) -> int:
        """Waits until the program ends; returns its exit code."""
        wait_until(lambda: not self.running, timeout_s, f"the end of {self.name}", progress)
        return int(self._child.returncode)

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


def wait_until(condition: Callable[[], Any], timeout_s: float, what: str, progress: Progress | None = None) -> Any:
    """Polls until `condition` returns something true, and shows the progress; raises DemoError after the time-out."""
    end = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise DemoError(f"{what}: not within {timeout_s:.0f} s")
        if progress is not None:
            OUT.progress(progress)
        time.sleep(0.05)
    return found


def make_media(folder: Path, *more: str, progress: Progress | None = None) -> dict[str, Any]:
    """Makes the clips with scripts/make-media.sh; returns what media.json says about them."""
    folder.mkdir(parents=True, exist_ok=True)
    script = Process("make-media", [str(ROOT / "scripts" / "make-media.sh"), str(folder), *more], folder, None)
    try:
        if script.wait(MEDIA_S, progress) != 0:
            raise DemoError(f"make-media.sh failed:\n{script.output}")
    finally:
        script.end()
    media: dict[str, Any] = json.loads((folder / "media.json").read_text(encoding="utf-8"))
    return media


# ---- the head-end ----------------------------------------------------------------------------------------------------


class HeadEnd:
    """The reference head-end as a separate process, queried through its control endpoints."""

    def __init__(
        self,
        python: str,
        folder: Path,
        environment: dict[str, str],
        kid: str,
        key: str,
        *more: str,
        progress: Progress | None = None,
    ) -> None:
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
            # These programs run in real time, and a busy machine may stop one of them, or the head-end, for longer than
            # the usual tolerance. If a heartbeat is late by more than a whole period, the session expires.
            "--set",
            f"beat_tolerance_ms={PERIOD_S * 1000}",
        ]
        command += ["--key", f"{kid}:{key}", "--account", ACCOUNT, "--ready-file", str(ready), *more]
        self.process = Process("headend", command, folder, environment)
        try:
            facts = wait_until(lambda: self._read(ready), START_S, "the head-end's start", progress)
        except DemoError as error:
            self.process.end()
            raise DemoError(f"{error}\n{self.process.output}") from None
        self.url = str(facts["url"]).rstrip("/")
        self.page_url = str(facts["page_url"])
        self.ssm_url = str(facts["ssm_url"])
        self.license_url = str(facts["license_urls"]["clearkey"])
        self.license_url_v2 = str(facts["license_urls_v2"]["clearkey"])

    def _read(self, ready: Path) -> dict[str, Any] | None:
        if not self.process.running:
            raise DemoError(f"the head-end ended at once (exit code {self.process.wait(START_S)})")
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

    def progress(self) -> str:
        """Returns what the head-end holds now, for a progress line."""
        held = [session for session in self.sessions() if session["state"] == "active"]
        beats = sum(session["beats"] for session in held)
        words = f"the head-end holds {len(held)} session{'' if len(held) == 1 else 's'}"
        return f"{words}, kept alive by {beats} heartbeat{'' if beats == 1 else 's'} so far" if beats else words

    def journal(self) -> list[dict[str, Any]]:
        return list(self.ask("journal")["entries"])


# ---- the screens -----------------------------------------------------------------------------------------------------


class Screen:
    """One run of usher-player. While the demo waits for the end of the run, it shows the text of `progress`."""

    def __init__(
        self,
        stage: Stage,
        run: str,
        name: str,
        arguments: list[str],
        token: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.name = name
        self._progress = progress
        self.summary_file = stage.folder / f"{run}.json"
        command = [stage.player, "--name", name, "--summary-json", str(self.summary_file)]
        command += ["--colour", "always" if OUT.coloured else "never", *arguments]
        environment = {**stage.environment, **({"USHER_TOKEN": token} if token else {})}
        self.process = Process(run, command, stage.folder, environment)
        stage.processes.append(self.process)
        self.exit_code: int | None = None
        self.summary: dict[str, Any] = {}

    def finish(self) -> Screen:
        self.exit_code = self.process.wait(PLAY_S, self._progress)
        try:
            self.summary = json.loads(self.summary_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DemoError(f"{self.name} left no summary ({error}); its output:\n{self.process.output}") from None
        OUT.quote(self.process.output)
        OUT.say(f"   {OUT.dim('└ exit code')} {self.exit_code}")
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
