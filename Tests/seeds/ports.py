"""Builds and runs the ports of the seeds. A seed is a page of an operator SDK; its ports are hosts in C, C++ and Python
that follow this page step by step."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
LANGUAGES = ["C", "C++", "Python"]
FLAGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-pthread", "-Wl,--as-needed"]
LIBRARIES = ["-lavformat", "-lavcodec", "-lavutil", "-ljson-c", "-lcurl"]
COMPILERS = {
    "C": (os.environ.get("CC", "cc"), "-std=c99", ".c"),
    "C++": (os.environ.get("CXX", "c++"), "-std=c++17", ".cpp"),
}
PATIENCE_S = 12.0 * int(os.environ.get("USHER_TEST_PATIENCE", "1"))
"""The longest wait for a port, in real time."""

BUILD_S = 120.0
"""The longest time for a compiler to build a port, in real time."""


class Host:
    """A port that runs. Its standard input gets the viewer's actions, its standard output says what happened."""

    def __init__(self, who: str, command: list[str]) -> None:
        self.who = who
        self._lines: list[str] = []
        self._read = 0
        self._ended = False
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def does(self, *action: object) -> None:
        """Sends an action of the viewer."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, action)) + "\n")
        self._process.stdin.flush()

    def says(self, *beginnings: str) -> list[str]:
        """Waits until the port has printed a line for each of these beginnings. Returns these lines. Only lines after
        those of the previous call count."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._ended or self._found(beginnings), PATIENCE_S), (
                f"{self.who} does not say {beginnings}; it said {self._lines}"
            )
            found = self._found(beginnings)
            assert found, f"{self.who} ended without {beginnings}; it said {self._lines}"
            self._read = 1 + max(found)
            return [self._lines[number] for number in found]

    def said(self, beginning: str) -> list[str]:
        """Returns all lines printed so far that begin with this text."""
        with self._changed:
            return [line for line in self._lines if line.startswith(beginning)]

    def ends(self) -> list[str]:
        """Closes standard input, so that the port ends, and waits for its end. Returns all lines that it has
        printed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        status = self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert status == 0, f"{self.who} ended with {status}: {self._lines}"
        return self._lines

    def kill(self) -> None:
        """Ends the process if it still runs."""
        self._process.kill()
        self._process.wait()

    def _found(self, beginnings: tuple[str, ...]) -> list[int]:
        """Returns the numbers of the lines with these beginnings, one line for each; an empty list if a beginning is
        missing."""
        left, found = list(range(self._read, len(self._lines))), list[int]()
        for beginning in beginnings:
            number = next((number for number in left if self._lines[number].startswith(beginning)), None)
            if number is None:
                return []
            left.remove(number)
            found.append(number)
        return found

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Ports:
    """Builds and runs the ports of the seeds with one build of the library. Compilers build all ports in the
    background."""

    def __init__(self, library: Path, folder: Path, names: set[str]) -> None:
        """Starts to build the ports with these names."""
        self._library = library
        self._folder = folder
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1)
        self._built: dict[tuple[str, str], Future[Path]] = {
            (name, language): self._pool.submit(self._build, name, language)
            for name in sorted(names)
            for language in COMPILERS
        }

    def run(self, name: str, language: str, *arguments: str, status: int = 0) -> list[str]:
        """Runs a port with these arguments. Returns the lines of its output, sorted, because two threads print them:
        one the events, the other the results."""
        found = subprocess.run(
            [*self._program(name, language), *arguments], capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert found.returncode == status, (
            f"{name} in {language} ended with {found.returncode}:\n{found.stdout}{found.stderr}"
        )
        return sorted(found.stdout.splitlines())

    @contextmanager
    def host(self, name: str, language: str, *arguments: str) -> Iterator[Host]:
        """Starts a port that gets the viewer's actions from standard input."""
        host = Host(f"{name} in {language}", [*self._program(name, language), *arguments])
        try:
            yield host
        finally:
            host.kill()

    def builds(self) -> Iterator[list[str]]:
        """Waits until the compilers have built all ports. Before each wait it yields the names of the missing ports."""
        missing = {build: f"{name} in {language}" for (name, language), build in self._built.items()}
        while missing:
            yield sorted(missing.values())
            for build in wait(missing, return_when=FIRST_COMPLETED).done:
                del missing[build]

    def close(self) -> None:
        """Cancels the builds that have not begun."""
        self._pool.shutdown(cancel_futures=True)

    def _program(self, name: str, language: str) -> list[str]:
        if language == "Python":
            return [sys.executable, "-u", str(HERE / f"{name}.py")]
        return [str(self._built[name, language].result())]

    def _build(self, name: str, language: str) -> Path:
        compiler, standard, suffix = COMPILERS[language]
        out = self._folder / f"{name}-{language}"
        linked = [str(self._library), f"-Wl,-rpath,{self._library.parent}", *LIBRARIES]
        made = subprocess.run(
            [compiler, standard, *FLAGS, f"-I{INCLUDE}", str(HERE / f"{name}{suffix}"), *linked, "-o", str(out)],
            capture_output=True,
            text=True,
            timeout=BUILD_S,
        )
        assert made.returncode == 0, made.stderr
        return out
