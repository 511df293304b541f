#!/usr/bin/env python3
"""Checks that README and docs agree with the repository: quoted code equals the files from which it comes, all links
and names exist, and docs/symbols.txt has every name.

Each claim is one line, "ok - ..." or "not ok - ...". Standard library only.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from headers import Headers  # noqa: E402

PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(ROOT / "benchmarks" / name for name in ("README.md",)),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "site"),
    *sorted((ROOT / ".github").rglob("*.md")),
]
EVERYDAY = {
    *("action", "completion", "context", "door", "event", "fault", "grace", "leave", "machine", "operation", "origin"),
    *("outage", "player", "question", "settle", "story", "tag", "transport"),
}
"""Terms of the glossary that pages also use as everyday words. Their first use need not be a link."""

HEADERS = Headers()

failed = 0


def claim(what: str, wrong: Iterable[str]) -> None:
    global failed
    found = list(wrong)
    print(f"{'not ok' if found else 'ok'} - {what}")
    for line in found:
        print(f"    {line}")
    failed += bool(found)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(page), re.M | re.S)


def quotes() -> None:
    example = text_of(ROOT / "examples" / "pytest" / "test_second_screen.py")
    claim(
        "docs/pytest.md quotes the first test of examples/pytest/test_second_screen.py",
        [] if blocks(ROOT / "docs" / "pytest.md", "python")[0].strip() in example else ["its first block is not there"],
    )
    stories = "".join(text_of(path) for path in (ROOT / "Tests" / "stories").glob("test_*.py"))
    page = ROOT / "docs" / "testing.md"
    claim(
        "docs/testing.md quotes a story that exists",
        [block.split("(")[0] for block in blocks(page, "python") if block not in stories],
    )


def pieces_of(block: str) -> list[list[str]]:
    """Splits a quote at each line `/* ... */`. Returns the parts, each as a list of lines without indentation."""
    parts = re.split(r"^[ ]*/\* \.\.\. \*/\n", block, flags=re.M)
    return [[line.strip() for line in part.splitlines()] for part in parts]


def is_quote(block: str, program: str) -> bool:
    """Whether the program contains all parts of the quote, in the order of the quote."""
    lines, since = [line.strip() for line in program.splitlines()], 0
    for piece in pieces_of(block):
        found = [at for at in range(since, len(lines)) if lines[at : at + len(piece)] == piece]
        if not found:
            return False
        since = found[0] + len(piece)
    return True


def services() -> None:
    """Checks docs/services and docs/concepts: each block of C quotes an example to which the page links, and each URL
    of a request is in docs/protocol.md or docs/delegates.md. These pages have no code block of another kind, because no
    test would run it."""
    known = text_of(ROOT / "docs" / "protocol.md") + text_of(ROOT / "docs" / "delegates.md")
    for page in sorted([*(ROOT / "docs" / "services").glob("*.md"), *(ROOT / "docs" / "concepts").glob("*.md")]):
        text = text_of(page)
        languages = re.findall(r"^```(?!\{)(.*?)\n.*?^```$", text, re.M | re.S)
        examples = [(page.parent / name).resolve() for name in re.findall(r"\]\(([^)]*/examples/c/\w+\.c)\)", text)]
        quoted = [block for block in blocks(page, "c") if any(is_quote(block, text_of(path)) for path in examples)]
        wrong = [] if len(quoted) == len(languages) else [f"{len(languages)} blocks: {', '.join(languages)}"]
        urls = re.findall(r"`(?:GET|POST) ([^`]+)`", text)
        wrong += [f"neither page has the URL {url}" for url in urls if url not in known]
        claim(f"{page.relative_to(ROOT)}: its {len(languages)} quotes and {len(urls)} requests are right", wrong)


def links() -> None:
    for page in PAGES:
        targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text_of(page))
        local = [target for target in targets if "://" not in target]
        claim(
            f"{page.relative_to(ROOT)}: the targets of its {len(local)} links exist",
            [target for target in local if not (page.parent / target).exists()],
        )


def anchors_of(page: Path) -> list[str]:
    """Returns the anchors that GitHub and GitLab make from the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text_of(page), flags=re.M | re.S), re.M)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def anchors() -> None:
    """Checks a link `page.md#heading`: the page must have this heading."""
    found, wrong = 0, []
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text_of(page)):
            found += 1
            other = page.parent / target if target else page
            if not other.exists() or anchor not in anchors_of(other):
                wrong.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    claim(f"the targets of the {found} links to headings exist", wrong)


def glossary() -> None:
    """Checks that docs/glossary.md explains each term once, in alphabetical order."""
    terms = anchors_of(ROOT / "docs" / "glossary.md")[1:]
    plain = [term.replace("-", "") for term in terms]
    wrong = [later for earlier, later in itertools.pairwise(plain) if earlier >= later]
    claim(f"docs/glossary.md has {len(terms)} terms, each once and in order", wrong)


def spelling() -> None:
    """Checks that sentences spell "licence"; CONTRIBUTING.md has the rule."""
    wrong = [
        f"{page.relative_to(ROOT)}:{sentences_of(page).count(chr(10), 0, found.start()) + 1}: {found[0]}"
        for page in PAGES
        for found in re.finditer(r"(?<![\w*'-])[Ll]icenses?(?![\w*'-])", sentences_of(page))
    ]
    claim("sentences spell licence, and only names spell license", wrong)


def uses(term: str) -> str:
    """Returns a pattern that finds a term in a sentence, also in the plural."""
    plural = re.escape(term[:-1]) + "(?:y|ies)" if term.endswith("y") else re.escape(term) + "s?"
    begin = f"[{term[0].upper()}{term[0]}]" + plural[1:] if term[0].islower() else plural
    return rf"(?<![\w-]){begin}(?![\w-])".replace(r"\ ", r"\s+")


def sentences_of(page: Path) -> str:
    """Returns the sentences of a page, with the links to the glossary and without other links. Code, tables, headings,
    comments, pictures and names in backquotes become blanks, so that each word stays at its place."""
    left_out = (
        r"^ *```.*?^ *```$",
        r"!\[[^]]*\]\([^)]*\)",
        r"^ *(?:\||#|<!--|!\[)[^\n]*$",
        r"`[^`]*`",
        r"\[[^][]*\]\((?![^)]*glossary\.md#)[^)]*\)",
        r"\b(?:Secure )?[Ss]ession\s+[Mm]anager\b",
    )
    text = text_of(page)
    for pattern in left_out:
        text = re.sub(pattern, lambda found: re.sub(r"[^\n]", "\0", found[0]), text, flags=re.M | re.S)
    return text


def first_uses() -> None:
    """Checks that each page links a glossary term to the glossary where a sentence first uses the term. The link may
    also be in a line above this sentence, for example in a row of a table."""
    terms = re.findall(r"^### (.*)$", text_of(ROOT / "docs" / "glossary.md"), re.M)
    longest_first = sorted({*terms} - EVERYDAY, key=len, reverse=True)
    pages = {*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"}
    others = {ROOT / "docs" / name for name in ("glossary.md", "api-changes.md", "site/index.md")}
    for page in sorted(pages - others):
        text = sentences_of(page)
        wrong = []
        for term in longest_first:
            use = re.search(uses(term), text)
            anchor = re.sub(r"[^\w -]", "", term.lower()).replace(" ", "-")
            link = re.search(rf"\]\([^)]*glossary\.md#{anchor}\)", text_of(page))
            if use and (not link or "[" in text_of(page)[use.end() : link.start()]):
                wrong.append(f"line {text.count(chr(10), 0, use.start()) + 1}: {term}")
            text = re.sub(uses(term), lambda found: re.sub(r"[^\n]", "\0", found[0]), text)
        claim(f"{page.relative_to(ROOT)}: the first use of each term is a link to the glossary", wrong)


def paths() -> None:
    """Checks that each path in backquotes, such as `a/b.c`, exists. Paths with a placeholder and files that a build
    makes are exceptions."""
    tops = {entry.name for entry in ROOT.iterdir() if not entry.name.startswith(".")} - {"build"}
    for page in PAGES:
        named = set(re.findall(r"`([A-Za-z][\w.+-]*/[\w./+-]*)`", text_of(page)))
        ours = {name for name in named if name.split("/")[0] in tops}
        claim(
            f"{page.relative_to(ROOT)}: the {len(ours)} paths it names exist",
            sorted(name for name in ours if not (ROOT / name).exists()),
        )


def names() -> None:
    """Checks that headers, scripts, sources or bindings have every usher_... and USHER_... that a page names."""
    bindings = ("bindings/python/src", "bindings/python/tests", "bindings/pytest/src")
    code = ("scripts", "Sources", "hosts", "examples", *bindings)
    folders = [
        ROOT / name for name in (*code, "Tests/stage", "Tests/stories", "Tests/security", "Tests/seeds", "Tests/faults")
    ]
    sources = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    texts = [
        HEADERS.text,
        *map(text_of, [*sources, ROOT / "Makefile", ROOT / "CMakeLists.txt", ROOT / "Package.swift"]),
    ]
    known = {name for text in texts for name in re.findall(r"\b(?:usher|USHER)_\w+", text)}
    for page in PAGES:
        said = set(
            re.findall(r"\b(?:usher|USHER)_\w*[A-Za-z0-9]\b", re.sub(r"\b(?:usher|USHER)_\w*_\*", "", text_of(page)))
        )
        claim(f"{page.relative_to(ROOT)}: its {len(said)} usher_ names exist", sorted(said - known))


def ledger() -> None:
    """Checks that docs/symbols.txt has every public name once, and no other name."""
    lines = (ROOT / "docs" / "symbols.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    claim("docs/symbols.txt: each line is a name and three versions", [" ".join(row) for row in rows if len(row) != 4])
    names = [row[0] for row in rows]
    claim("docs/symbols.txt has each name once", sorted({name for name in names if names.count(name) > 1}))
    found = {row[0] for row in rows if row[-1] == "-"}
    types = {*HEADERS.handles, *HEADERS.structures, *HEADERS.numbers, "usher_api", *HEADERS.function_types}
    public = {*HEADERS.functions, *types, *HEADERS.macros, *(f"usher::{name}" for name in HEADERS.cpp_names)}
    claim(f"docs/symbols.txt has the {len(public)} names of the headers (else: make generate)", sorted(public - found))
    claim("docs/symbols.txt has no name that the headers lack", sorted(found - public))


def options() -> None:
    """Checks that docs/protocol.md names every option of the SSP delegate, with the default that the header states."""
    structure = HEADERS.structures["usher_ssp_options"]
    fields = [field.name for field in structure.fields]
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    skipped = {"struct_size", "reserved", "certificate_url", "license_url", "sync_setup_teardown"}
    claim(
        f"docs/protocol.md names the {len(fields)} options of the SSP delegate",
        [name for name in fields if name not in skipped and f"`{name}`" not in page],
    )
    wrong, compared = [], 0
    for default, field in re.findall(r"Default (\d+)[^*]*?\*/\s*\w+ (\w+);", structure.body, re.S):
        for bracket in re.findall(rf"`{field}` \[(\d+)", page):
            compared += 1
            if bracket != default:
                wrong.append(f"{field}: the header says {default}, the page {bracket}")
    claim(
        f"the {compared} defaults in docs/protocol.md are the header's",
        wrong if compared else ["none was compared"],
    )


def references() -> None:
    """Checks that the references in comments exist.

    A comment refers to a heading of a page, for example "(protocol.md: Races)", or to a source that conformance.md
    lists, for example "(loader page)".
    """
    headings = {page.name: re.findall(r"^#+ (.*)$", text_of(page), re.M) for page in PAGES}
    explained = text_of(ROOT / "docs" / "conformance.md").partition("\n## ")[0]
    folders = [ROOT / name for name in ("bindings/python", "Sources", "Tests", "include", "examples", "scripts")]
    code = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in (".py", ".swift", ".c", ".h", ".hpp", ".cpp")
    ]
    found, wrong = 0, []
    for path in sorted(set(code) - {Path(__file__).resolve()}):
        text = text_of(path)
        cited = {
            f"{page}: {heading}": heading in headings.get(page, [])
            for page, heading in re.findall(r"([\w-]+\.md): ([A-Z][^;)\"]*)", text)
        }
        cited |= {
            name: name in explained
            for name in re.findall(r"\b(?:SSM v1|SSM V2|multi-instance|customer SSM|loader) page\b", text)
        }
        cited |= dict.fromkeys(re.findall(r"\b[Pp]rotocol §?\d[\d.]*|\(S\d\b[^)]*\)|§ ?\d[\d.]*", text), False)
        found += len(cited)
        wrong += [f"{path.relative_to(ROOT)}: {name}" for name, leads in cited.items() if not leads]
    claim(f"the {found} headings and sources that comments cite exist", wrong if found else ["none was found"])


def no_machine() -> None:
    """Checks that no page and no script names a folder of one machine."""
    pages = [
        *PAGES,
        *(ROOT / name for name in ("Makefile", "CMakeLists.txt", "Package.swift", ".ci/run")),
        *(ROOT / "scripts").glob("*"),
    ]
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in pages
        if path.is_file()
        for name in re.findall(r"(?<![\w.])/(?:work|root|home|opt)/\S*", text_of(path))
    }
    wrong = sorted(found)
    claim("no path of one machine is named", wrong)


def main() -> int:
    for check in (
        quotes,
        services,
        links,
        anchors,
        glossary,
        spelling,
        first_uses,
        paths,
        names,
        ledger,
        options,
        references,
        no_machine,
    ):
        check()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
