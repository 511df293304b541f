"""The file format of cassettes: JSON lines. The first line names the version, the last line says how many exchanges
there are, so that a reader notices if the file is cut."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VERSION = 1
OPERATIONS = ("set-up", "heartbeat", "teardown", "renewal", "licence", "certificate", "other")
BODIES = ("empty", "json", "text", "bytes")
_NUMBERS = {"heartbeat", "errorcode", "code"}
_FLAGS = {"sessiondrmenforced"}
TOKEN_MEMBER = "sessiontoken"
_TOKEN_NAME = re.compile(r"C\d{1,6}|S\d{1,6}#\d{1,9}")


class CassetteError(ValueError):
    """Raised if a file is no cassette, is cut, or has a version that this program does not know."""


@dataclass(frozen=True)
class Exchange:
    """One request and its reply. No field can hold a text of the player or of the server: each value is a number, a
    word of a fixed list, or a name of a token (``C1``: a content token; ``S1#2``: the second token of the first
    session).

    Attributes:
        at_ms: when the request arrived, in ms after the start of the recording.
        operation: one of ``OPERATIONS``.
        tokens: the names of the tokens that the request carried.
        took_ms: the time until the reply.
        status: HTTP status; None: the request had no reply.
        body: the kind of the reply's body, one of ``BODIES``.
        size: the number of bytes of that body.
        members: known members of a JSON reply: the period, codes, flags, and the session token by its name.
        retry_after_s: the number of seconds in the header ``Retry-After``, if there was one.
    """

    at_ms: int
    operation: str
    tokens: tuple[str, ...] = ()
    took_ms: int = 0
    status: int | None = None
    body: str = "empty"
    size: int = 0
    members: Mapping[str, int | float | bool | str] = field(default_factory=dict)
    retry_after_s: int | None = None

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise CassetteError(f"operation: {self.operation!r} is unknown")
        if self.body not in BODIES:
            raise CassetteError(f"body: {self.body!r} is unknown")
        for name in ("at_ms", "took_ms", "size"):
            if not _is_whole(getattr(self, name)):
                raise CassetteError(f"{name}: not a whole number")
        for name in ("status", "retry_after_s"):
            if getattr(self, name) is not None and not _is_whole(getattr(self, name)):
                raise CassetteError(f"{name}: not a whole number")
        for token in self.tokens:
            if not isinstance(token, str) or not _TOKEN_NAME.fullmatch(token):
                raise CassetteError("tokens: a value is no name of a token")
        for name, value in self.members.items():
            if not _fits(name, value):
                raise CassetteError("members: a member is not of the known ones, or has another type")

    @property
    def session_token(self) -> str | None:
        """The name of the session token in the reply; None if the reply has none."""
        found = [value for name, value in self.members.items() if name.lower() == TOKEN_MEMBER]
        return str(found[0]) if found else None

    @property
    def code(self) -> float | None:
        """The error code in the reply; None if the reply has none."""
        found = [value for name, value in self.members.items() if name.lower() in ("errorcode", "code")]
        return float(found[0]) if found else None


@dataclass(frozen=True)
class Cassette:
    """A recording.

    Attributes:
        exchanges: the exchanges, in the order of the requests.
        source: ``proxy``, or ``trace``. A trace has no tokens, so in a cassette from a trace the names of tokens are
            inferred.
    """

    exchanges: tuple[Exchange, ...]
    source: str = "proxy"


def write(cassette: Cassette, path: Path) -> None:
    """Writes a cassette."""
    lines: list[dict[str, Any]] = [{"cassette": VERSION, "source": cassette.source}]
    lines += [asdict(exchange) for exchange in cassette.exchanges]
    lines.append({"end": len(cassette.exchanges)})
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="ascii")


def read(path: Path) -> Cassette:
    """Reads a cassette from a file, and returns it.

    Raises:
        CassetteError: the file is not a whole cassette of a known version; the text names the line.
        OSError: the file cannot be read.
    """
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CassetteError(f"{path} is no cassette: it is not text") from error
    lines = [_object(path, number, text) for number, text in enumerate(texts, start=1) if text.strip()]
    if not lines or "cassette" not in lines[0]:
        raise CassetteError(f"{path} is no cassette: its first line does not name a version")
    version = lines[0]["cassette"]
    if version != VERSION:
        raise CassetteError(f"{path} is of version {version}; this usher reads version {VERSION}: install a newer one")
    source = lines[0].get("source")
    if source not in ("proxy", "trace"):
        raise CassetteError(f"{path}, line 1: the source {source!r} is unknown")
    if len(lines) < 2 or "end" not in lines[-1]:
        raise CassetteError(f"{path} is cut: its last line, which has the number of exchanges, is missing")
    made = tuple(_exchange(path, number, line) for number, line in enumerate(lines[1:-1], start=2))
    if lines[-1]["end"] != len(made):
        raise CassetteError(f"{path} is cut: it has {len(made)} exchanges, and its last line says {lines[-1]['end']}")
    return Cassette(made, source)


def known_members(value: object) -> dict[str, int | float | bool]:
    """Returns the members of a JSON object that a cassette may have, without tokens."""
    items = value.items() if isinstance(value, dict) else ()
    return {name: item for name, item in items if name.lower() != TOKEN_MEMBER and _fits(name, item)}


def _fits(name: str, value: object) -> bool:
    known = name.lower()
    if known == TOKEN_MEMBER:
        return isinstance(value, str) and _TOKEN_NAME.fullmatch(value) is not None
    if known in _FLAGS:
        return isinstance(value, bool)
    return known in _NUMBERS and isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _object(path: Path, number: int, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        if number == 1:
            raise CassetteError(f"{path} is no cassette: its first line is not JSON") from error
        raise CassetteError(f"{path} is cut or damaged: line {number} is not whole JSON") from error
    if not isinstance(value, dict):
        raise CassetteError(f"{path}, line {number}: not a JSON object")
    return value


def _exchange(path: Path, number: int, line: Mapping[str, Any]) -> Exchange:
    names: Iterable[str] = Exchange.__dataclass_fields__
    if set(line) != set(names):
        raise CassetteError(f"{path}, line {number}: its members are not those of an exchange")
    if not isinstance(line["tokens"], list) or not isinstance(line["members"], dict):
        raise CassetteError(f"{path}, line {number}: tokens is no list, or members is no object")
    try:
        return Exchange(**{**line, "tokens": tuple(line["tokens"])})
    except CassetteError as error:
        raise CassetteError(f"{path}, line {number}: {error}") from error
