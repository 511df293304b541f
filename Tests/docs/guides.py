#!/usr/bin/env python3
"""Saves the programs of README and of each page of docs/guides, runs its commands, and compares what they print.

    guides.py [PAGE ...]        PAGE: the name of a guide, such as zap, or readme; default: all

Each page has a head-end of its own, which the commands of docs/guides/index.md start. Instead of /tmp/guides and port
8090 they use a temporary folder and a free port. After the commands of a page:

- the exit code is 0, and the commands have used each program of the page;
- each line of a `text` block is a line of the output (an ellipsis of the page stands for any text, a number for any
  number);
- the head-end holds no session, and saw no violation of the protocol.

Also checks that the programs of the guides have the format of the repository, and that no page has a code block of
another kind. Prints one line per claim, "ok - ..." or "not ok - ...". Standard library only.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import readme
from served import ROOT, asked, free_port, held_sessions, run

GUIDES = ROOT / "docs" / "guides"
README = ROOT / "README.md"
AT_MOST_S = 200
AT_ONCE = 2
NAME = re.compile(r'(?:/\* |// |# |""")([\w.]+\.(?:c|cpp|py)):')
"""The name of a program, in its first line."""
BREAKS_RULES = {"own-headend"}
"""The guides whose commands break rules of the protocol on purpose: `usher check` does."""
RUN = ("sh", "text", "c", "cpp", "python")
"""The kinds of code blocks that this test runs or compares."""


@dataclass
class Block:
    """A code block of a page: its language and its lines."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    found = re.findall(r"^```(\S*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    return [Block(language, text) for language, text in found if not language.startswith("{")]


def pattern(line: str) -> re.Pattern[str]:
    """Returns a pattern for the output lines that a line of a `text` block allows."""
    words = [re.sub(r"\d+", r"\\d+", re.escape(word)) for word in re.split(r"\s*…\s*", line.strip())]
    return re.compile(r"\s*" + ".*".join(re.sub(r"(\\ )+", r"\\s+", word) for word in words) + r"\s*")


def missing(page: Path, output: str) -> list[str]:
    """Returns the lines of the page's `text` blocks that the output lacks."""
    printed = output.splitlines()
    # Python's print() writes a line and its end separately. If two threads print at the same time, both lines may be
    # joined, and an empty line follows.
    joined = [line for line, after in pairwise(printed) if not after]

    def is_printed(line: str) -> bool:
        wanted = pattern(line)
        parts = [re.compile(f"(?:{wanted.pattern}).*"), re.compile(f".*(?:{wanted.pattern})")]
        return any(wanted.fullmatch(told) for told in printed) or any(
            part.fullmatch(told) for told in joined for part in parts
        )

    lines = [line for block in blocks(page) if block.language == "text" for line in block.text.splitlines() if line]
    return [line for line in lines if not is_printed(line)]


def save(page: Path, folder: Path) -> dict[str, str]:
    """Writes the programs of the page into the folder. Returns their texts by name."""
    programs: dict[str, str] = {}
    for block in blocks(page):
        if block.language in ("c", "cpp", "python"):
            named = NAME.match(block.text)
            if not named:
                raise ValueError(f"{page.name}: a program has no name in its first line: {block.text.splitlines()[0]}")
            programs[named[1]] = block.text
            (folder / named[1]).write_text(block.text, encoding="utf-8")
    return programs


def commands(page: Path) -> str:
    """Returns the commands of index.md, then those of the page."""
    pages = [GUIDES / "index.md", page]
    return "\n".join(block.text for one in pages for block in blocks(one) if block.language == "sh")


def unformatted(folder: Path, programs: dict[str, str]) -> list[str]:
    """Returns what the formatters and compilers say about the programs."""
    tools = {
        ".c": [
            ["clang-format", "--dry-run", "--Werror", f"--style=file:{ROOT / '.clang-format'}"],
            ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT}/include"],
        ],
        ".py": [
            [str(ROOT / ".venv/bin/ruff"), *words, "--config", str(ROOT / "bindings/python/pyproject.toml")]
            for words in (["format", "--diff"], ["check", "--quiet", "--no-cache"])
        ],
    }
    said: list[str] = []
    for name in programs:
        for tool in tools[Path(name).suffix]:
            ended = subprocess.run([*tool, name], cwd=folder, capture_output=True, text=True, timeout=60)
            said += [*ended.stdout.splitlines(), *ended.stderr.splitlines()] if ended.returncode else []
    return said


def failures(page: Path, folder: Path) -> list[str]:
    """Returns what was wrong with a page; nothing if all was right."""
    port = free_port()
    programs = save(page, folder)
    script = commands(page)
    wrong = [f"no command uses {name}" for name in programs if not re.search(rf"\b{re.escape(name)}\b", script)]
    if page.parent == GUIDES:
        wrong += unformatted(folder, programs)
    script = script.replace("/tmp/guides", str(folder))
    script = re.sub(r"\b8090\b", str(port), script)
    code, group = run(script, folder / "output", AT_MOST_S)
    try:
        output = (folder / "output").read_text(encoding="utf-8", errors="replace")
        if code != 0:
            return [*wrong, f"exit code {code} (-1: not ended after {AT_MOST_S} s)", *output.splitlines()[-20:]]
        lacks = missing(page, output)
        wrong += [f"not printed: {line}" for line in lacks]
        wrong += output.splitlines()[-60:] if lacks else []
        held = held_sessions(port)
        wrong += [f"the head-end still holds {held} sessions"] if held else []
        if page.stem not in BREAKS_RULES:
            # The guides run in real time. A busy machine may delay a program or the head-end for longer than the
            # tolerance; after two periods without a heartbeat the session would expire.
            wrong += [f"violation: {one}" for one in asked(port, "violations?ignore=late-beat")["violations"]]
        return wrong
    finally:
        os.killpg(group, signal.SIGTERM)


def checked(page: Path) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="usher-guides-") as folder:
        try:
            if page == README:
                page = Path(folder) / "readme.md"
                page.write_text(readme.guide(), encoding="utf-8")
            return failures(page, Path(folder))
        except (OSError, ValueError, KeyError) as error:
            return [f"{type(error).__name__}: {error}"]


def main(names: list[str]) -> int:
    failed = 0
    pages = [page for page in [README, *sorted(GUIDES.glob("*.md"))] if page != GUIDES / "index.md"]
    pages = [page for page in pages if not names or page.stem.lower() in names]
    count = 0
    for page in [GUIDES / "index.md", *pages]:
        count += len(blocks(page))
        other = [block for block in blocks(page) if block.language not in RUN]
        if other:
            failed += 1
            print(f"not ok - {page.relative_to(ROOT)} has {len(other)} code blocks of a kind that no test runs")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for page, wrong in zip(pages, pool.map(checked, pages), strict=True):
            print(f"{'not ok' if wrong else 'ok'} - {page.relative_to(ROOT)}: programs and commands do what it says")
            for line in wrong:
                print(f"    {line}")
            failed += bool(wrong)
    print(f"{'ok' if count and pages else 'not ok'} - {len(pages)} pages with {count} code blocks were tested")
    return 1 if failed or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
