"""Builds test programs, runs them with a head-end and counts their claims. Tests/c/run and Tests/cpp/run use this
module.

Each program has its own account, and prints a line "ok - ..." or "not ok - ..." for each claim. If a program makes no
new claim for 60 s times `--patience`, the runner ends the program, and prints its name and the last claim that passed.
When a program has ended, the head-end must hold no session of its account. The last line of the output is the sum: "N
passed, N failed". Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from headers import Headers  # noqa: E402
from interface import c_files  # noqa: E402
from parts import HANG_S, HOST_LIMIT_S, MOST_HUNG, STACKS_S  # noqa: E402

HEADERS = Headers()
STRESS = [ROOT / "Tests" / "c" / name for name in ("stress.h", "stress_steps.h")]
"""The files with the steps of stress.c. For each function that no step calls, the runner writes a step that calls the
function with simple arguments."""
STORIES = [*sorted((ROOT / "Tests" / "c").glob("*.c")), ROOT / "Tests" / "c" / "support.h"]
"""The sources of the C tests. For each function that none of these files calls, the runner adds a call with simple
arguments to every_function.c."""
C_FLAGS = ["-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g", "-O1", "-pthread"]
CXX_FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g", "-O1", "-pthread"]
KID = "00112233445566778899aabbccddeeff"
KEY = "ffeeddccbbaa99887766554433221100"


@dataclass
class Program:
    """One test program, and how to build and run it."""

    source: Path
    """The main source file; its suffix selects C or C++."""
    arguments: list[str] = field(default_factory=list)
    """The runner replaces `{name}` by a value of the head-end: license_url, clearkey_url, ssm_url,
    token and key_id (32 hex digits)."""
    libraries: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    """Additional flags for the compiler."""
    more: list[Path] = field(default_factory=list)
    """Additional source files."""
    preload: Path | None = None
    """The source file of a library that the runner builds and preloads."""
    needs: str = ""
    """The pkg-config name of a library that the program needs. If the library is not installed, the runner skips the
    program."""
    linked: bool = True
    """Whether the program is linked with libusher."""
    expires: bool = False
    """Whether the program leaves out the teardown on purpose, so that its sessions end only when they expire."""
    own_allocator: bool = False
    """Whether the program replaces malloc. Sanitizers and valgrind replace malloc too, so the runner skips the program
    under these tools."""
    finds_stale_memory: bool = False
    """Whether the program itself is built with AddressSanitizer. Then the runner skips it under ThreadSanitizer and
    valgrind."""
    plays_for_seconds: bool = False
    """Whether the program plays for the time that `--seconds` gives. Meanwhile it prints no line "ok - …", so the
    runner waits this much longer before it ends the program because of a hang."""
    suppressed: str = ""
    """The NAME of Tests/sanitizers/valgrind-NAME.supp, which lists the reports to suppress, with the reason."""
    says: str = ""
    """For an example, which prints no claims: a pattern that its output must match."""
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.name or self.source.stem


class HeadEnd:
    """The reference head-end as a separate process."""

    def __init__(self, python: str, folder: Path) -> None:
        ready = folder / "headend.json"
        command = [
            python,
            "-m",
            "usher.testing.headend",
            "--limit",
            "100000",
            "--period",
            "1",
            "--grace",
            "4",
            "--rotation",
            "strict",
        ]
        command += ["--enforced", "fairplay", "--key", f"{KID}:{KEY}", "--ready-file", str(ready)]
        command += ["--journal-tokens"]  # hosts look for the headers that they set
        command += ["--set", "token_form=mixed"]  # tokens are UUIDs, 12 letters or 13 digits; the stories use JWTs too
        path = [os.environ.get("PYTHONPATH", ""), str(ROOT / "bindings" / "python" / "src")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
        self.log = folder / "headend.txt"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        end = time.monotonic() + 30
        while not (ready.exists() and ready.read_text().strip().endswith("}")):
            if self.process.poll() is not None or time.monotonic() > end:
                self.end()
                sys.exit(f"the head-end did not start (--python {python}):\n{self.log.read_text()}")
            time.sleep(0.05)
        self.facts: dict[str, Any] = json.loads(ready.read_text())

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.facts['control_url']}/{path}", data, timeout=20) as reply:
            answer: dict[str, Any] = json.load(reply)
            return answer

    def active(self, account: str) -> int:
        return int(self.ask(f"sessions?state=active&account={account}")["active"])

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def arguments_of(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("library", type=Path, help="libusher.so")
    parser.add_argument(
        "--python",
        default=None,
        help="Python that has usher.testing's requirements (default: .venv/bin/python, else this one)",
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only these programs")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="all but these programs")
    parser.add_argument("--seconds", type=float, default=5, help="how long the stress test runs (5)")
    parser.add_argument(
        "--seed", type=int, default=None, help="random seed of the stress test (default: the time, which it prints)"
    )
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"), help="C compiler")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "c++"), help="C++ compiler")
    parser.add_argument("--flags", default="", help="more flags for compiling and linking, e.g. -fsanitize=thread")
    parser.add_argument(
        "--under", default="", help="a program to run them under, e.g. 'valgrind -q --error-exitcode=9'"
    )
    parser.add_argument("--patience", type=int, default=1, help="multiplies every time limit")
    parser.add_argument(
        "--hang-seconds",
        type=float,
        default=HANG_S,
        help=f"end a program that makes no new claim for this time ({HANG_S})",
    )
    parser.add_argument("--show", action="store_true", help="print every claim")
    arguments = parser.parse_args()
    venv = ROOT / ".venv" / "bin" / "python"
    arguments.python = arguments.python or (str(venv) if venv.exists() else sys.executable)
    arguments.library = arguments.library.resolve()
    return arguments


class Runner:
    """Runs programs, prints a line for each, and counts passed and failed claims."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.passed = 0
        self.failures: list[str] = []
        self.skipped = 0
        self.hung = 0
        self.folder = Path(tempfile.mkdtemp(prefix="usher-tests-"))
        (self.folder / "plain_steps.h").write_text(c_files.plain_steps(HEADERS, words(*STRESS)))
        (self.folder / "plain_calls.h").write_text(c_files.plain_steps(HEADERS, words(*STORIES)))

    def build(self, program: Program) -> Path | str:
        """Builds the program. Returns its path, or the reason why it is skipped or does not build."""
        if program.own_allocator and (self.arguments.under or "-fsanitize" in self.arguments.flags):
            return "skipped: it has its own allocator"
        if program.finds_stale_memory and (self.arguments.under or "-fsanitize=thread" in self.arguments.flags):
            return "skipped: it needs AddressSanitizer"
        cxx = program.source.suffix == ".cpp"
        command = [self.arguments.cxx, *CXX_FLAGS] if cxx else [self.arguments.cc, *C_FLAGS]
        command += [
            *shlex.split(self.arguments.flags),
            *(["-fsanitize=address"] if program.finds_stale_memory else []),
            "-I",
            str(ROOT / "include"),
            "-I",
            str(ROOT / "Tests" / "c"),
            "-I",
            str(self.folder),
        ]
        libraries = list(program.libraries)
        if program.needs:
            asked = subprocess.run(["pkg-config", "--cflags", "--libs", program.needs], capture_output=True, text=True)
            if asked.returncode:
                return f"skipped: pkg-config does not find {program.needs}"
            libraries += asked.stdout.split()
        out = self.folder / program.name
        command += [*program.flags, *map(str, [program.source, *program.more]), "-o", str(out)]
        if program.linked:
            command += [str(self.arguments.library), f"-Wl,-rpath,{self.arguments.library.parent}"]
        made = subprocess.run([*command, *libraries], capture_output=True, text=True)
        if program.preload and made.returncode == 0:
            shared = ["-std=gnu99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
            command = [self.arguments.cc, *shared, str(program.preload), "-o"]
            command += [str(self.folder / f"{program.preload.stem}.so"), "-ldl"]
            made = subprocess.run(command, capture_output=True, text=True)
        return out if made.returncode == 0 else f"does not build:\n{made.stdout}{made.stderr}"

    def run(self, program: Program, headend: HeadEnd) -> None:
        built = self.build(program)
        if isinstance(built, str):
            if built.startswith("skipped"):
                self.skipped += 1
                print(f"{program.name:22} {built}", flush=True)
            else:
                self.end_of(program, 0, [built], 0)
            return
        token = headend.ask("token", {"account": program.name, "max_sessions": 100000})["token"]
        free = headend.ask("token", {"account": program.name, "session_control": False})["token"]
        urls, certificates = headend.facts["license_urls"], headend.facts["certificate_urls"]
        places = {"license_url": urls["widevine"], "clearkey_url": urls["clearkey"], "enforced_url": urls["fairplay"]}
        places |= {"ssm_url": headend.facts["ssm_url"], "token": token}
        places["key_id"] = "00112233445566778899aabbccddeeff"
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")} | {
            "USHER_TEST_LICENSE_URL": urls["widevine"],
            "USHER_TEST_ENFORCED_URL": urls["fairplay"],
            "USHER_TEST_V2_URL": headend.facts["license_urls_v2"]["widevine"],
            "USHER_TEST_V2_ENFORCED_URL": headend.facts["license_urls_v2"]["fairplay"],
            "USHER_TEST_CERTIFICATE_URL": certificates["fairplay"],
            "USHER_TEST_SSM_URL": headend.facts["ssm_url"],
            "USHER_TEST_PORT": str(headend.facts["port"]),
            "USHER_TEST_ACCOUNT": program.name,
            "USHER_TEST_TOKEN": token,
            "USHER_TEST_FREE_TOKEN": free,
            "USHER_TEST_LIBRARY": str(self.arguments.library),
            "USHER_TEST_SECONDS": str(self.arguments.seconds),
            "USHER_TEST_PATIENCE": str(self.arguments.patience),
        }
        if self.arguments.seed is not None:
            environment["USHER_TEST_SEED"] = str(self.arguments.seed)
        if program.preload:
            environment["LD_PRELOAD"] = str(self.folder / f"{program.preload.stem}.so")
        command = [*self.under(program), str(built), *(argument.format(**places) for argument in program.arguments)]
        log = self.folder / f"{program.name}.txt"
        started = time.monotonic()
        failures: list[str] = []
        with log.open("wb") as output:
            child = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                if ending := self.ending(program, child, log):
                    failures.append(ending)
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        said = log.read_text(encoding="utf-8", errors="replace")
        claims = re.findall(r"^ok - .*$", said, re.M)
        bad = re.findall(r"^not ok - (.*)$", said, re.M)
        passed = len(claims)
        if program.says:
            if re.search(program.says, said):
                passed += 1
            else:
                bad.append(f"its output has no {program.says!r}")
        if bad or failures:
            shown = [line for line in said.splitlines() if not line.startswith("ok - ")][-60:]
            failures = (
                bad
                + ([text for text in failures if not bad or not text.startswith("exit code")])
                + ["its output:\n" + "\n".join(shown)]
            )
        wait_s = 12 if program.expires else 3 * self.arguments.patience
        end = time.monotonic() + wait_s
        while (active := headend.active(program.name)) and time.monotonic() < end:
            time.sleep(0.1)
        if active:
            failures.insert(0, f"{active} sessions are still held at the head-end")
        else:
            passed += 1
        headend.ask("release", {})
        headend.ask("faults", {"clear": True})
        if self.arguments.show:
            print(said, end="")
        self.end_of(program, passed, failures, time.monotonic() - started)

    def ending(self, program: Program, child: subprocess.Popen[bytes], log: Path) -> str:
        """Waits for the end of the program. Returns "" if the program succeeds; otherwise its exit code or signal, or,
        if it hangs, the last claim that passed."""
        patience = self.arguments.patience
        plays_s = self.arguments.seconds if program.plays_for_seconds else 0
        hang_s, limit_s = self.arguments.hang_seconds * patience + plays_s, HOST_LIMIT_S * patience + plays_s
        began = since = time.monotonic()
        seen = 0
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = child.wait(0.5)
                return f"ended by signal {-code}" if code < 0 else f"exit code {code}" if code else ""
            said, now = log.read_text(encoding="utf-8", errors="replace"), time.monotonic()
            claims = said.splitlines() if program.says else re.findall(r"^(?:not )?ok - .*$", said, re.M)
            if len(claims) > seen:
                seen, since = len(claims), now
            if now - since >= hang_s:
                why = f"no new {'output' if program.says else 'claim'} for {hang_s:.0f} s"
            elif now - began >= limit_s:
                why = f"still running after {limit_s:.0f} s"
            else:
                continue
            self.hung += 1
            passed = claims if program.says else [claim[5:] for claim in claims if claim.startswith("ok - ")]
            last = (
                f"the last {'line' if program.says else 'claim that passed'}: {passed[-1]}" if passed else "none before"
            )
            return f"{why}; {last}{self.stacks(child.pid)}"

    def under(self, program: Program) -> list[str]:
        """Returns the command of `--under`, which runs the program. If this command is valgrind, adds the
        suppressions of the program."""
        under = shlex.split(self.arguments.under)
        if program.suppressed and under and Path(under[0]).name == "valgrind":
            under.append(f"--suppressions={ROOT / 'Tests' / 'sanitizers' / f'valgrind-{program.suppressed}.supp'}")
        return under

    def stacks(self, pid: int) -> str:
        if not shutil.which("gdb"):
            return ""
        command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 30"]
        try:
            asked = subprocess.run(command, capture_output=True, text=True, timeout=STACKS_S)
        except subprocess.TimeoutExpired:
            return f"\n(gdb has not read the stacks within {STACKS_S} s)"
        threads = re.split(r"^(?=Thread )", asked.stdout, flags=re.M)
        ours = [thread for thread in threads if "platform_epoll_wait" not in thread]
        return "\n" + "".join(re.sub(r"^(#.{150}).*$", r"\1", thread, flags=re.M) for thread in ours)

    def end_of(self, program: Program, passed: int, failures: list[str], seconds: float) -> None:
        self.passed += passed
        told = [text for text in failures if not text.startswith("its output")]
        self.failures += [f"{program.name}: {text.splitlines()[0]}" for text in told]
        print(f"{program.name:22} {passed:4} passed {len(told):3} failed {seconds:6.1f} s", flush=True)
        for text in failures:
            print("    not ok: " + text.replace("\n", "\n    "), flush=True)

    def claim(self, good: bool, what: str) -> None:
        if good:
            self.passed += 1
        else:
            self.failures.append(what)
        if not good or self.arguments.show:
            print(f"{'ok' if good else 'not ok'} - {what}", flush=True)

    def finish(self) -> int:
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in self.failures:
            print(f"failed: {name}")
        print(
            f"{self.passed} passed, {len(self.failures)} failed" + (f", {self.skipped} skipped" if self.skipped else "")
        )
        return 1 if self.failures else 0


def functions() -> list[str]:
    """Returns the names of all functions in the headers."""
    return sorted(HEADERS.functions)


def words(*files: Path) -> set[str]:
    """Returns all identifiers that begin with usher_ in the code of these files; comments do not count."""
    text = "\n".join(re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read_text(), flags=re.S) for file in files)
    return set(re.findall(r"\b(usher_\w+)\b", text))


def main(description: str, programs: list[Program], more: Any = None) -> int:
    arguments = arguments_of(description)
    known = {program.name for program in programs}
    if unknown := {*arguments.only, *arguments.skip} - known:
        sys.exit(f"no such program: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    chosen = [
        program
        for program in programs
        if (not arguments.only or program.name in arguments.only) and program.name not in arguments.skip
    ]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the programs and the head-end
    runner = Runner(arguments)
    if more:
        more(runner)
    headend = HeadEnd(arguments.python, runner.folder)
    try:
        for program in chosen:
            if runner.hung < MOST_HUNG:
                runner.run(program, headend)
            else:
                runner.claim(False, f"{program.name}: not run, because {MOST_HUNG} programs before it hung")
    finally:
        headend.end()
    return runner.finish()
