#!/usr/bin/env python3
"""Runs the examples with a head-end. Checks with the head-end's journal which requests arrived, and that no session
remains.

    run.py [--build build/examples] [--build-cpp build/examples-cpp] [--library build/shipped/libusher.so]
           [--python .venv/bin/python]

Prints one line per claim, "ok - ..." or "not ok - ...". scripts/demo_stage.py has the classes for head-end and
processes. Standard library only.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import answer_later  # noqa: E402
import delegates  # noqa: E402
import demo_stage  # noqa: E402
import resource_loader  # noqa: E402

AT_MOST_S = 30.0


class Examples:
    """One head-end for all examples. The account has one stream, the period is one second, and the head-end refuses old
    session tokens."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.failed = 0
        self.library = Path(arguments.library).resolve()
        self.python, self.build, self.build_cpp, self.folder = (
            str(arguments.python),
            Path(arguments.build),
            Path(arguments.build_cpp),
            folder,
        )
        self.stage = demo_stage.Stage(
            argparse.Namespace(player=self.build / "usher-player", library=arguments.library), folder
        )
        self.media = demo_stage.make_media(folder)
        self.clip, self.kid = str(folder / self.media["encrypted"]), str(self.media["kid"])
        self.headend = demo_stage.HeadEnd(self.python, folder, self.stage.environment, self.kid, self.media["key"])
        self.stage.processes.append(self.headend.process)
        self.seen = 0

    # ---- claims, processes, requests ---------------------------------------------------------------------------------

    def claim(self, good: object, what: str, evidence: object = "") -> None:
        print(f"{'ok' if good else 'not ok'} - {what}")
        if not good:
            self.failed += 1
            print("    " + str(evidence).replace("\n", "\n    "))
        sys.stdout.flush()

    def start(self, name: str, command: list[str], environment: dict[str, str] | None = None) -> demo_stage.Process:
        process = demo_stage.Process(name, command, self.folder, {**self.stage.environment, **(environment or {})})
        self.stage.processes.append(process)
        return process

    def run(self, name: str, command: list[str], environment: dict[str, str] | None = None) -> tuple[int, str]:
        process = self.start(name, command, environment)
        code = process.wait(AT_MOST_S)
        return code, process.output

    def new_routes(self) -> list[str]:
        """Returns the routes of the requests since the last call; consecutive heartbeats count as one."""
        routes = [entry["route"] for entry in self.headend.journal()][self.seen :]
        self.seen += len(routes)
        return [
            route
            for index, route in enumerate(routes)
            if index == 0 or route != "heartbeat" or routes[index - 1] != "heartbeat"
        ]

    def active(self) -> list[dict[str, Any]]:
        return [session for session in self.headend.sessions() if session["state"] == "active"]

    def nothing_held(self, who: str) -> None:
        self.claim(not self.active(), f"{who}: no session is held afterwards", self.headend.sessions())

    def c_minimal(self) -> list[str]:
        return [
            str(self.build / "usher-minimal"),
            self.headend.license_url,
            self.headend.ssm_url,
            self.headend.token(),
            self.kid,
        ]

    def python_minimal(self, token: str | None = None) -> list[str]:
        script = str(ROOT / "examples" / "python" / "minimal.py")
        return [
            self.python,
            script,
            self.headend.license_url,
            self.headend.ssm_url,
            token or self.headend.token(),
            self.kid,
        ]

    def player(self, summary: str, *more: str) -> list[str]:
        where = [
            "--license-url",
            self.headend.license_url,
            "--ssm-url",
            self.headend.ssm_url,
            "--summary-json",
            str(self.folder / summary),
        ]
        return [self.stage.player, *where, *more, self.clip]

    # ---- stories -----------------------------------------------------------------------------------------------------

    def minimal_c(self) -> None:
        code, output = self.run("minimal-c", self.c_minimal())
        self.claim(code == 0 and "a licence of " in output, "minimal.c gets a licence", f"exit code {code}\n{output}")
        routes = self.new_routes()
        self.claim(
            routes == ["setup", "license", "teardown"],
            "minimal.c: set-up, licence, teardown arrived, in this order",
            routes,
        )
        for event in ("SESSION_STARTED", "LICENSE", "SESSION_ENDED", "PLAYBACK_CLOSED"):
            self.claim(event in output, f"minimal.c prints {event}", output)
        self.nothing_held("minimal.c")

    def minimal_cpp(self) -> None:
        command = [str(self.build_cpp / "usher-minimal"), *self.c_minimal()[1:]]
        code, output = self.run("minimal-cpp", command)
        self.claim(
            code == 0 and "a licence of " in output and "KEPT_ALIVE" in output,
            "minimal.cpp gets a licence",
            f"exit code {code}\n{output}",
        )
        routes = self.new_routes()
        wanted = ["setup", "license", "heartbeat", "teardown"]
        self.claim(routes == wanted, "minimal.cpp: set-up, licence, heartbeats, teardown, in this order", routes)
        self.nothing_held("minimal.cpp")

    def minimal_python(self) -> None:
        code, output = self.run("minimal-python", self.python_minimal(), {"PYTHONUNBUFFERED": "1"})
        self.claim(code == 0 and "a licence of " in output, "minimal.py gets a licence", f"exit code {code}\n{output}")
        routes = self.new_routes()
        self.claim(
            routes == ["setup", "license", "heartbeat", "teardown"],
            "minimal.py: set-up, licence, heartbeats, teardown, in this order",
            routes,
        )
        self.claim("KEPT_ALIVE" in output, "minimal.py prints KEPT_ALIVE", output)
        self.nothing_held("minimal.py")

    def refusals(self) -> None:
        """Another screen uses the account's only stream. Both minimal examples report the refusal, and the other screen
        continues to play."""
        holder = self.start("holder", self.python_minimal())
        demo_stage.wait_until(self.active, AT_MOST_S, "the session of the example that holds the stream")
        code, output = self.run("refused-c", self.c_minimal())
        self.claim(
            code == 1 and "USHER_E_LIMIT" in output,
            "minimal.c is refused while another screen plays, and prints the reason",
            f"exit code {code}\n{output}",
        )
        code, output = self.run("refused-python", self.python_minimal())
        self.claim(
            code == 1 and "Too many" in output,
            "minimal.py is refused while another screen plays, and prints the reason",
            f"exit code {code}\n{output}",
        )
        code = holder.wait(AT_MOST_S)
        self.claim(code == 0, "the other screen plays to the end", f"exit code {code}\n{holder.output}")
        self.nothing_held("after the refusals")
        self.new_routes()

    def usage(self) -> None:
        code, output = self.run("usage-c", [str(self.build / "usher-minimal")])
        self.claim(
            code == 2 and "usage:" in output,
            "minimal.c without arguments prints its usage",
            f"exit code {code}\n{output}",
        )
        code, output = self.run("key-id-c", [*self.c_minimal()[:-1], "AAAAAAAAAAAAAAAAAAAAAA"])
        self.claim(
            code == 2 and "a key id has 32 hex digits" in output,
            "minimal.c says what a key id is",
            f"exit code {code}\n{output}",
        )
        code, output = self.run("usage-python", [self.python, str(ROOT / "examples" / "python" / "minimal.py")])
        self.claim(
            code == 1 and "Usage:" in output,
            "minimal.py without arguments prints its usage",
            f"exit code {code}\n{output}",
        )
        code, output = self.run("usage-player", [self.stage.player, "--help"])
        self.claim(code == 0 and "Exit code:" in output, "usher-player --help", f"exit code {code}\n{output}")

    def nobody_answers(self) -> None:
        """No server listens on the port: the example reports an error at once and does not crash."""
        nowhere = ["http://127.0.0.1:9/licenses", "http://127.0.0.1:9/ssm"]
        command = self.c_minimal()
        code, output = self.run("nowhere-c", [command[0], *nowhere, *command[3:]])
        self.claim(
            code == 1 and "SETUP_ERROR" in output,
            "minimal.c prints SETUP_ERROR if no server listens",
            f"exit code {code}\n{output}",
        )

    def the_player(self) -> None:
        code, output = self.run(
            "player", self.player("player.json", "--speed", "8"), {"USHER_TOKEN": self.headend.token()}
        )
        self.claim(
            code == 0 and "300 frames" in output, "usher-player plays the whole clip", f"exit code {code}\n{output}"
        )
        routes = self.new_routes()
        self.claim(
            routes == ["setup", "license", "heartbeat", "teardown"],
            "usher-player: set-up, licence, heartbeats, teardown, in this order",
            routes,
        )
        code, clear = self.run("player-clear", [self.stage.player, "--clear", str(self.folder / self.media["clear"])])
        hashes = [
            [line.split()[1] for line in text.splitlines() if line.split()[:1] == ["sha256"]]
            for text in (output, clear)
        ]
        self.claim(
            hashes[0] == hashes[1] and len(hashes[0]) == 2,
            "usher-player decoded exactly the clear clip, picture and sound",
            hashes,
        )
        self.nothing_held("usher-player")

    def the_player_interrupted(self) -> None:
        process = self.start(
            "interrupted", self.player("interrupted.json", "--realtime"), {"USHER_TOKEN": self.headend.token()}
        )
        demo_stage.wait_until(self.active, AT_MOST_S, "the session of the player that will be interrupted")
        time.sleep(0.3)  # the player shows some frames before Ctrl-C
        process.interrupt()
        code = process.wait(AT_MOST_S)
        self.claim(code == 1, "usher-player ends after Ctrl-C", f"exit code {code}\n{process.output}")
        routes = self.new_routes()
        self.claim(
            routes[0] == "setup" and routes[-1] == "teardown",
            "usher-player tears its session down after Ctrl-C",
            routes,
        )
        self.nothing_held("usher-player after Ctrl-C")

    def answer_later(self) -> None:
        answer_later.tell(self)

    def delegates(self) -> None:
        delegates.tell(self)

    def resource_loader(self) -> None:
        resource_loader.tell(self)

    def all(self) -> None:
        for story in (
            self.minimal_c,
            self.minimal_cpp,
            self.minimal_python,
            self.answer_later,
            self.delegates,
            self.resource_loader,
            self.refusals,
            self.usage,
            self.nobody_answers,
            self.the_player,
            self.the_player_interrupted,
        ):
            try:
                story()
            except (demo_stage.DemoError, OSError, ValueError, IndexError) as error:
                self.claim(False, f"{story.__name__} ran to its end", error)
        violations = self.headend.ask("violations")["violations"]
        self.claim(not violations, "the head-end found no protocol violation", violations)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build" / "examples", help="where the C examples were built")
    parser.add_argument(
        "--build-cpp", default=ROOT / "build" / "examples-cpp", help="where the C++ examples were built"
    )
    parser.add_argument("--library", default=ROOT / "build" / "shipped" / "libusher.so")
    parser.add_argument("--python", default=os.environ.get("USHER_PYTHON", sys.executable))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="usher-examples-") as folder:
        examples = Examples(arguments, Path(folder))
        try:
            examples.all()
        finally:
            examples.stage.end()
    return 1 if examples.failed else 0


if __name__ == "__main__":
    sys.exit(main())
