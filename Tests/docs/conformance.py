#!/usr/bin/env python3
"""Checks docs/conformance.md and docs/security.md: every statement names tests, and these tests exist, ran and passed.

A row names a test as `file::test`, or as `#tag`: all tests that carry the tag. A test in Python carries a tag by
`@pytest.mark.shows("tag")`; in Swift, C and C++ by a comment above it, `// shows: tag`. A renamed test keeps its tag.

    Tests/docs/conformance.py               checks that the tests exist
    Tests/docs/conformance.py build/test    also reads the results in build/test: JUnit XML, and the output of C and C++

Each claim prints one line, "ok - ..." or "not ok - ...". If a kind of test has no results, the script prints a line "#
..." instead of claims. Standard library only.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "docs" / name for name in ("conformance.md", "security.md")]
NOT_SHOWN = "Not shown by a test"
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
PYTHON = {
    "Python": ROOT / "bindings" / "python" / "tests",
    "head-end": ROOT / "bindings" / "python" / "tests" / "headend",
    "stories": ROOT / "Tests" / "stories",
    "faults": ROOT / "Tests" / "faults",
    "security": ROOT / "Tests" / "security",
    "floods": ROOT / "Tests" / "floods",
    "seeds": ROOT / "Tests" / "seeds",
    "guardian": ROOT / "Tests" / "guardian",
}
"""The folder of each kind of Python test."""
RESULTS = {
    "Swift": "swift*.xml",
    "head-end": "headend*.xml",
    "Python": "python-*.xml",
    "stories": "stories-*.xml",
    "security": "security-*.xml",
    "seeds": "seeds-*.xml",
    "faults": "faults*.xml",
    "floods": "floods*.xml",
    "guardian": "guardian-shipped.xml",  # guardian-checked runs only the kills at chosen points
    "C": "c-*.log",
    "C++": "cpp-*.log",
    "gate": "shipped.log",
}
"""The result files of each kind of test; each file that exists must contain the tests of that kind."""

CLAIMS = ("C", "C++", "gate")
"""The kinds of test whose results (claims) are lines `ok - ...` and `not ok - ...` in a log."""

failed = 0


def claim(what: str, wrong: Iterable[str]) -> None:
    global failed
    found = list(wrong)
    print(f"{'not ok' if found else 'ok'} - {what}")
    for line in found:
        print(f"    {line}")
    failed += bool(found)


# ---- the tests -------------------------------------------------------------------------------------------------------


@dataclass
class File:
    """A file with tests: the kind of its tests, and for each test its names in the results (in C the text of the
    claim)."""

    path: Path
    kind: str
    tests: dict[str, list[str]] = field(default_factory=dict)
    tags: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a tag and the name of a test that has this tag."""

    def ids(self, name: str) -> list[str]:
        """Returns the names under which the results have the test. For a claim, `name` may be only the beginning of its
        text; then the function returns this beginning."""
        if self.kind in CLAIMS:
            return [name] if any(text.startswith(name) for text in self.tests) else []
        return self.tests.get(name, [])


def swift(path: Path) -> File:
    """Returns the @Test functions of a Swift file. Their names in the results contain the module and the type."""
    module = path.relative_to(ROOT / "Tests").parts[0]
    found, suite, pending, tags = File(path, "Swift"), "", False, list[str]()
    for line in path.read_text(encoding="utf-8").splitlines():
        tags += tags_in(line)
        if line.lstrip().startswith("//"):
            continue
        if outer := re.match(r"(?:@\w+(?:\(.*\))? )*(?:final )?(?:struct|class|actor|enum|extension) (\w+)", line):
            suite = outer[1]
        pending = pending or "@Test" in line
        if pending and (function := re.search(r"\bfunc `?(\w+)", line)):
            found.tests.setdefault(function[1], []).append(f"{module}.{suite}.{function[1]}")
            found.tags += [(tag, function[1]) for tag in tags]
            pending, tags = False, []
    return found


def python(path: Path, kind: str) -> File:
    """Returns the test_ functions of a Python module. A function with several sets of parameters counts as one test."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    found = File(path, kind)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            found.tests[node.name] = [f"{module}.{node.name}"]
            marks = [mark for mark in node.decorator_list if ast.unparse(mark).startswith("pytest.mark.shows(")]
            texts = [text for mark in marks if isinstance(mark, ast.Call) for text in mark.args]
            found.tags += [(str(ast.literal_eval(text)), node.name) for text in texts]
    return found


def tags_in(comments: str) -> list[str]:
    """Returns the tags in comments of the form `// shows: tag, other-tag`."""
    lists = re.findall(r"^ *// shows: ([\w-]+(?:, [\w-]+)*)$", comments, re.M)
    return [tag for tags in lists for tag in tags.split(", ")]


def claims(path: Path) -> File:
    """Returns the claims of a C or C++ test: the texts in the calls tell(good, text, ...) and answers(wanted, found,
    text), up to the first format character."""
    found = File(path, "C" if path.suffix == ".c" else "C++")
    text = path.read_text(encoding="utf-8")
    before = 0
    for call in re.finditer(r"\b(tell|answers)\(", text):
        tags, before = tags_in(text[before : call.start()]), call.end()
        arguments = arguments_of(text, call.end())
        place = 1 if call[1] == "tell" else 2
        for said in STRING.findall(arguments[place]) if place < len(arguments) else []:
            if beginning := re.split(r"%(?!%)", said.replace('\\"', '"'))[0].rstrip():
                found.tests[beginning] = [beginning]
                found.tags += [(tag, beginning) for tag in tags]
    return found


def gate(path: Path) -> File:
    """Returns the claims of a shell test. If the text of a claim has a variable, takes only the text before the first
    variable."""
    found = File(path, "gate")
    for said in re.findall(r'^(?:claim|same) "([^"$]*)', path.read_text(encoding="utf-8"), re.M):
        found.tests[said.rstrip()] = [said.rstrip()]
    return found


def arguments_of(text: str, start: int) -> list[str]:
    """Returns the arguments of the call whose opening parenthesis is just before `start`."""
    found, depth, at, begin = [], 1, start, start
    while at < len(text):
        if string := STRING.match(text, at):
            at = string.end()
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0 or (depth == 1 and text[at] == ","):
            found.append(text[begin:at])
            begin = at + 1
        if depth == 0:
            break
        at += 1
    return found


@cache
def there() -> dict[str, list[File]]:
    """Returns all files with tests, by name."""
    files = [
        *(swift(path) for path in (ROOT / "Tests").glob("Usher*Tests/**/*.swift")),
        *(python(path, kind) for kind, folder in PYTHON.items() for path in folder.glob("test_*.py")),
        gate(ROOT / "Tests" / "abi" / "shipped.sh"),
        *(claims(path) for folder in ("c", "cpp") for path in (ROOT / "Tests" / folder).glob("*.c*")),
    ]
    found: dict[str, list[File]] = {}
    for file in files:
        found.setdefault(file.path.name, []).append(file)
    return found


@cache
def carriers() -> dict[str, list[tuple[str, str]]]:
    """For each tag, returns the tests that have it, as pairs of file and name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for file in (file for files in there().values() for file in files):
        for tag, test in file.tags:
            found.setdefault(tag, []).append((file.path.name, test))
    return found


# ---- the pages ------------------------------------------------------------------------------------------------------


@dataclass
class Table:
    """The statements of one section, and the tests that they name, as pairs of file and name."""

    title: str
    statements: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    named: list[tuple[str, str]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


def tables(page: Path) -> list[Table]:
    found: list[Table] = []
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found.append(Table(line[3:].strip()))
        elif line.startswith("|") and found and not re.match(r"\|[-| ]+\|$|\| statement \|", line):
            row(found[-1], line)
    return [table for table in found if table.statements]


def row(table: Table, line: str) -> None:
    cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    table.statements.append(cells[0])
    names = re.findall(r"`([\w.]+)::([^`]+)`", cells[-1])
    tags = re.findall(r"`#([\w-]+)`", cells[-1])
    table.named += names + [test for tag in tags for test in carriers().get(tag, [])]
    table.tags += tags
    if not names + tags:
        table.without.append(cells[0])


# ---- results ---------------------------------------------------------------------------------------------------------


def cases(file: Path) -> Iterator[tuple[str, str]]:
    """Yields the name of each test in a result file, as in `File.tests`, and its outcome."""
    if file.suffix == ".log":
        for good, text in re.findall(r"^(ok|not ok) - (.*)$", file.read_text(encoding="utf-8", errors="replace"), re.M):
            yield text, "passed" if good == "ok" else "failed"
        return
    for case in ElementTree.parse(file).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        name = re.split(r"[(\[]", case.get("name") or "")[0]
        yield f"{case.get('classname')}.{name}", outcome


class Ran:
    """The results of one part of the test run."""

    def __init__(self, name: str, files: list[Path]) -> None:
        self.name, self.outcomes = name, dict[str, set[str]]()
        for file in files:
            for test, outcome in cases(file):
                self.outcomes.setdefault(test, set()).add(outcome)

    def outcome(self, test: str, by_beginning: bool) -> str:
        found = {
            outcome
            for name, all_of in self.outcomes.items()
            if name == test or (by_beginning and name.startswith(test))
            for outcome in all_of
        }
        return (
            "failed" if "failed" in found else "passed" if "passed" in found else "skipped" if found else "did not run"
        )


def results(folder: Path) -> dict[str, list[Ran]]:
    """Returns the results by kind of test. `swift test` writes two files, one for each of Swift's testing libraries;
    only one of the files has our tests."""
    found: dict[str, list[Ran]] = {}
    for kind, pattern in RESULTS.items():
        files = sorted(folder.glob(pattern))
        parts = [files] if kind == "Swift" else [[file] for file in files]
        found[kind] = [Ran(part[0].name, part) for part in parts if part]
    return found


# ---- claims ----------------------------------------------------------------------------------------------------------


def exist(table: Table, files: dict[str, list[File]]) -> Iterator[str]:
    for tag in table.tags:
        if tag not in carriers():
            yield f"no test carries the tag #{tag}"
    for file, name in table.named:
        found = files.get(file, [])
        if len(found) != 1:
            yield f"{file}: {'no such file of tests' if not found else 'several files have this name'}"
        elif not found[0].ids(name):
            yield f"{file} has no {name}"


def passed(table: Table, files: dict[str, list[File]], ran: dict[str, list[Ran]]) -> Iterator[str]:
    for name, kind, test in sorted(tests_of(table, files)):
        for part in ran[kind]:
            outcome = part.outcome(test, kind in CLAIMS)
            if outcome != "passed":
                yield f"{name}: {outcome} ({part.name})"


def tests_of(table: Table, files: dict[str, list[File]]) -> set[tuple[str, str, str]]:
    """Returns the tests that a table names: for each test its name on the page, its kind, and its name in the
    results."""
    named = [(f"{file}::{name}", found, name) for file, name in table.named for found in files.get(file, [])]
    return {(title, found.kind, test) for title, found, name in named for test in found.ids(name)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "results", nargs="?", type=Path, metavar="FOLDER", help="with the results of the tests: build/test"
    )
    folder: Path | None = parser.parse_args().results
    files = there()
    ran = results(folder) if folder else {kind: [] for kind in RESULTS}
    unseen: dict[str, set[str]] = {}
    for page in PAGES:
        print(f"# {page.relative_to(ROOT)}")
        check(tables(page), files, ran, unseen)
    named = {tag for page in PAGES for table in tables(page) for tag in table.tags}
    claim(
        f"a row names each of the {len(carriers())} tags of tests",
        [f"#{tag}" for tag in carriers() if tag not in named],
    )
    for kind, names in sorted(unseen.items()):
        print(f"# no results {RESULTS[kind]}, so {len(names)} tests of kind {kind} were not checked")
    return 1 if failed else 0


def check(
    page: list[Table], files: dict[str, list[File]], ran: dict[str, list[Ran]], unseen: dict[str, set[str]]
) -> None:
    groups = [table for table in page if table.title != NOT_SHOWN]
    claim(
        f'the last section is "{NOT_SHOWN}"',
        [] if page and page[-1].title == NOT_SHOWN and len(groups) == len(page) - 1 else ["it is not"],
    )
    claim(
        "the statements of the last section name no test",
        [f"{file}::{name}" for table in page if table.title == NOT_SHOWN for file, name in table.named],
    )
    said = [statement for table in page for statement in table.statements]
    claim(
        f"the page has each of the {len(said)} statements once", sorted({text for text in said if said.count(text) > 1})
    )
    for table in groups:
        tests = tests_of(table, files)
        claim(f"{table.title}: each of {len(table.statements)} statements names a test", table.without)
        claim(f"{table.title}: its {len(set(table.named))} tests exist", exist(table, files))
        for name, kind, _ in tests:
            if not ran[kind]:
                unseen.setdefault(kind, set()).add(name)
        looked_up = {name for name, kind, _ in tests if ran[kind]}
        if looked_up:
            claim(f"{table.title}: {len(looked_up)} of its tests ran and passed", passed(table, files, ran))


if __name__ == "__main__":
    sys.exit(main())
