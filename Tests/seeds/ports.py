"""Builds and runs the ports of a seed: hosts in C, C++ and Python that follow its text step by step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
LANGUAGES = ["C", "C++", "Python"]
FLAGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-g", "-pthread"]
COMPILERS = {
    "C": (os.environ.get("CC", "cc"), "-std=c99", ".c"),
    "C++": (os.environ.get("CXX", "c++"), "-std=c++17", ".cpp"),
}


class Ports:
    """The ports of the seeds with one library."""

    def __init__(self, library: Path, folder: Path) -> None:
        self._library = library
        self._folder = folder
        self._built: dict[tuple[str, str], Path] = {}

    def run(self, name: str, language: str, *arguments: str, status: int = 0) -> list[str]:
        """Runs a port with arguments; returns its lines, sorted, because events and results come on two threads."""
        found = subprocess.run([*self._program(name, language), *arguments], capture_output=True, text=True, timeout=30)
        assert found.returncode == status, (
            f"{name} in {language} ended with {found.returncode}:\n{found.stdout}{found.stderr}"
        )
        return sorted(found.stdout.splitlines())

    def _program(self, name: str, language: str) -> list[str]:
        if language == "Python":
            return [sys.executable, str(HERE / f"{name}.py")]
        if (name, language) not in self._built:
            self._built[name, language] = self._build(name, language)
        return [str(self._built[name, language])]

    def _build(self, name: str, language: str) -> Path:
        compiler, standard, suffix = COMPILERS[language]
        out = self._folder / f"{name}-{language}"
        linked = [str(self._library), f"-Wl,-rpath,{self._library.parent}"]
        made = subprocess.run(
            [compiler, standard, *FLAGS, f"-I{INCLUDE}", str(HERE / f"{name}{suffix}"), *linked, "-o", str(out)],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
        return out
