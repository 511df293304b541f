"""Writes docs/symbols.txt, the list of all public names, and decides the order of the table of functions."""

from __future__ import annotations

from dataclasses import dataclass

from headers import ROOT, TABLE, Headers

from .sizes import RELEASES, releases

SYMBOLS = ROOT / "docs" / "symbols.txt"
NONE = "-"

HEAD = """\
# Every public name of libusher: C names as the headers have them, then names of usher.hpp (namespace usher).
# scripts/generate adds new names, with the version in include/usher/base.h. Do not delete the line of a name that was
# in a release: if you remove such a name from a header, write the version in the last column.
# The headers of each release, and with them the order of the function table, are in Tests/abi/releases.
#
# name                                        since  deprecated  removed
"""


@dataclass(frozen=True)
class Symbol:
    """A line of docs/symbols.txt."""

    name: str
    kind: str
    since: str
    deprecated: str = NONE
    removed: str = NONE

    @property
    def line(self) -> str:
        return f"{self.name:<45} {self.since:<6} {self.deprecated:<11} {self.removed}"


KINDS = {
    "functions": "functions",
    "types": "handles, structures and numbers",
    "callbacks": "callback types",
    "macros": "constants and macros",
    "cpp": "usher.hpp",
}


def public(headers: Headers) -> dict[str, list[str]]:
    """Returns the names that the headers have now, by kind."""
    return {
        "functions": list(headers.functions),
        "types": sorted([*headers.handles, *headers.structures, *headers.numbers, TABLE]),
        "callbacks": sorted(headers.function_types),
        "macros": headers.macros,
        "cpp": [f"usher::{name}" for name in headers.cpp_names],
    }


def read() -> dict[str, Symbol]:
    """Returns the lines of the ledger file."""
    if not SYMBOLS.exists():
        return {}
    found, kind = {}, ""
    titles = {title: kind for kind, title in KINDS.items()}
    for line in SYMBOLS.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ---- "):
            title = line.removeprefix("# ---- ")
            if title not in titles:
                raise ValueError(f"{SYMBOLS.relative_to(ROOT)}: the section {title!r} is none of {', '.join(titles)}")
            kind = titles[title]
        elif line and not line.startswith("#"):
            columns = line.split()
            if len(columns) != 4:
                raise ValueError(
                    f"{SYMBOLS.relative_to(ROOT)}: a line has a name and three versions; this has not: {line}"
                )
            found[columns[0]] = Symbol(columns[0], kind, *columns[1:])
    return found


def write(headers: Headers) -> str:
    known = read()
    version = "{}.{}".format(*headers.version)
    parts = [HEAD]
    for kind, names in public(headers).items():
        kept = [symbol for symbol in known.values() if symbol.kind == kind and symbol.name not in names]
        symbols = [known.get(name, Symbol(name, kind, version)) for name in names]
        if kind == "functions":
            symbols = [
                Symbol(symbol.name, kind, labels.get("Since", version), labels.get("Deprecated", NONE).split()[0])
                for symbol in symbols
                for labels in [headers.functions[symbol.name].labels]
            ]
        parts.append(f"\n# ---- {KINDS[kind]}\n" + "".join(f"{symbol.line}\n" for symbol in [*symbols, *kept]))
    return "".join(parts)


def debian_symbols(headers: Headers) -> str:
    """Returns the symbols file of the Debian package. For each function the file has the version of the package that a
    program needs if it calls this function. "~" includes packages that are made before this version is released."""
    lines = sorted(f" {name}@USHER_0 {each.labels['Since']}~" for name, each in headers.functions.items())
    head = "libusher.so.0 libusher0 #MINVER#\n* Build-Depends-Package: libusher-dev\n"
    return head + "".join(f"{line}\n" for line in lines)


def check(headers: Headers) -> list[str]:
    """Returns the differences between ledger and headers that a person must correct."""
    now = {name for names in public(headers).values() for name in names}
    ledger = SYMBOLS.relative_to(ROOT)
    wrong = []
    for symbol in read().values():
        if symbol.removed == NONE and symbol.name not in now:
            wrong.append(
                f"{symbol.name} is in {ledger} and in no header. If a release had it, keep it, or write the version "
                "that removes it in the last column; if no release had it, delete its line"
            )
        if symbol.removed != NONE and symbol.name in now:
            wrong.append(
                f"{symbol.name} is removed according to {ledger}, but a header has it: write - in the last column, or "
                "take it out of the header"
            )
    return wrong


# ---- the order of the table ------------------------------------------------------------------------------------------


def recorded(headers: Headers) -> tuple[str, list[str]]:
    """Returns the newest recorded release of this major version, and the functions of its table, in order."""
    folders = releases(RELEASES, headers.version[0])
    return (folders[-1].name, [*Headers(folders[-1] / "include").table]) if folders else ("none", [])


def table_order(headers: Headers) -> list[str]:
    """Returns the recorded functions in their order, then the newer ones in the order of the headers."""
    _, before = recorded(headers)
    old = [name for name in before if name in headers.functions]
    return old + [name for name in headers.functions if name not in old and name != "usher_get_api"]


def check_table(headers: Headers) -> list[str]:
    release, before = recorded(headers)
    return [
        f"{name} is in the table of release {release}, but no header declares it. Hosts of that release find the "
        "members of the table by their offset, so keep the function (it may answer an error)"
        for name in before
        if name not in headers.functions
    ]
