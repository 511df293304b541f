"""A host with a guardian as a separate process, which a test kills, and the session table of the head-end."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from usher.testing.doors import Door
from usher.testing.headend import HeadEnd, KeySystem

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATIENCE = int(os.environ.get("USHER_TEST_PATIENCE", "1"))
LIMIT_S = 20.0 * PATIENCE
"""The longest wait for anything. The tests of make kills also print how long it really takes."""
UNDER_TOOL = os.environ.get("USHER_TEST_GUARDIAN")
"""A program that runs the guardian under a sanitizer or valgrind (scripts/sanitize.py); None: the guardian itself."""
SYSTEMS: dict[str, KeySystem] = {"v1": "widevine", "v2": "widevine", "enforced": "fairplay"}


def library() -> Path:
    return Path(os.environ["USHER_LIBRARY"]).resolve()


def guardian() -> Path:
    """Returns the path of the guardian that the library starts by default."""
    return library().parent / "usher-guardian"


MARK = 300_000 + os.getpid() % 500_000
"""This process sets one of its resource limits to this number, and its hosts and their guardians inherit the limit. By
this number the tests recognise their own guardians: guardians of other test runs on the machine have another limit."""
resource.setrlimit(resource.RLIMIT_MSGQUEUE, (MARK, resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]))


def is_guardian(process: int) -> bool:
    """Whether a process is a guardian of a host of these tests; false for a zombie. (A guardian is a child of process
    1, which may need a moment to remove it.)"""
    status = status_of(process)
    if status["State"].startswith("Z"):
        return False
    limits = Path(f"/proc/{process}/limits").read_text(encoding="utf-8")
    if not re.search(rf"^Max msgqueue size +{MARK} ", limits, re.M):
        return False
    if UNDER_TOOL and b"usher-guardian" in Path(f"/proc/{process}/cmdline").read_bytes():
        return True
    return status["Name"] == "usher-guardian"


def build_host(folder: Path) -> Path:
    program = folder / "host"
    flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1", f"-I{ROOT / 'include'}"]
    linked = [str(library()), f"-Wl,-rpath,{library().parent},--allow-shlib-undefined"]
    subprocess.run(["cc", *flags, str(HERE / "host.c"), *linked, "-o", str(program)], check=True, timeout=120)
    return program


def wait_until(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> float:
    """Waits in real time. Returns how long it took, in seconds."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < limit_s, f"after {limit_s} s: {what}"
        time.sleep(0.005)
    return time.monotonic() - begun


def parent_of(process: int) -> int:
    return int(status_of(process)["PPid"])


def status_of(process: int) -> dict[str, str]:
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def guardians() -> set[int]:
    """Returns the processes of usher-guardian that run now, of all hosts."""
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with suppress(OSError):  # the process has ended
            if is_guardian(int(name)):
                found.add(int(name))
    return found


@dataclass
class Host:
    """A running host (host.c)."""

    process: subprocess.Popen[str]
    account: str
    before: set[int]
    lines: list[str] = field(default_factory=list)

    def wait_line(self, wanted: str) -> None:
        """Reads lines until one begins with `wanted`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if line.startswith(wanted):
                return
        raise AssertionError(f"the host ended without {wanted!r}: {self.lines}, {self.rest()}")

    def proceed(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def guardian(self) -> int:
        """Returns the process id of this host's guardian. No other host may have started after this host."""
        found = guardians() - self.before
        assert len(found) == 1, f"{len(found)} guardians: {found}"
        return found.pop()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)
        self.rest()

    def rest(self) -> str:
        """Reads what the host has written until its end, and waits for the end. Returns its standard error."""
        output, errors = self.process.communicate(timeout=LIMIT_S)
        self.lines += output.split("\n")
        return errors


class Killing:
    """Starts hosts, each with its own account. Their requests go to `door` if there is one, otherwise to the
    head-end."""

    def __init__(self, headend: HeadEnd, program: Path, door: Door | None = None) -> None:
        self.headend = headend
        self.door = door
        self.program = program
        self._count = 0

    def new_account(self) -> str:
        self._count += 1
        return f"account-{self._count}"

    def command(self, way: str, account: str, **options: object) -> list[str]:
        api = "v2" if way == "v2" else "v1"
        headend = self.headend
        tokens = [headend.content_token(account=account, max_sessions=5000) for _ in range(2)]
        if UNDER_TOOL:
            options.setdefault("guardian_path", UNDER_TOOL)
        words = [f"{name}={value}" for name, value in options.items() if value is not None]
        if headend.ca_file and "ca_file" not in options:
            words.append(f"ca_file={headend.ca_file}")
        urls = [headend.license_url(SYSTEMS[way], api=api), headend.ssm_url]
        if self.door is not None:
            urls = [self.door.url(url) for url in urls]
        return [str(self.program), way, *urls, *tokens, *words]

    def start(
        self,
        way: str = "v1",
        environment: dict[str, str] | None = None,
        account: str | None = None,
        descriptors: Collection[int] = (),
        **options: object,
    ) -> Host:
        account = account or self.new_account()
        command = self.command(way, account, **options)
        before = guardians()
        process = subprocess.Popen(
            command,
            env={**os.environ, "SWIFT_BACKTRACE": "enable=no", **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=descriptors,
        )
        return Host(process, account, before)

    @contextmanager
    def playing(
        self,
        way: str = "v1",
        environment: dict[str, str] | None = None,
        descriptors: Collection[int] = (),
        **options: object,
    ) -> Iterator[Host]:
        """Starts a host. Waits until the host has played its items; the host then stays alive."""
        host = self.start(way, environment, descriptors=descriptors, stays=1, **options)
        try:
            host.wait_line("played")
            yield host
        finally:
            if host.process.poll() is None:
                host.process.kill()
            host.rest()

    def held(self, account: str) -> int:
        return len(self.headend.sessions.active(account))

    def wait_free(self, account: str) -> float:
        """Waits until the account holds no session. Returns how long it took, in seconds."""
        return wait_until(lambda: not self.held(account), f"{account} holds {self.held(account)}: {self.story()}")

    def story(self) -> str:
        return re.sub(r"\s+", " ", str(self.headend.journal))[-2000:]
