"""The docstrings are complete for a user who has only the wheel: every option has its type, its unit and its default,
and no text points at C functions, headers or pages that a wheel does not contain."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import usher
from usher.testing.headend import HeadEnd, HeadEndConfig
from usher.testing.headend.settings import HeadEndSettings

PACKAGE = Path(usher.__file__).parent
ABOUT_C = ("_c/abi.py", "_c/ffi.py")
"""Modules that are about the C functions themselves; no user sees them."""
MISSING_IN_A_WHEEL = re.compile(r"\busher_[a-z0-9_]+|\b\w+\.h(?:pp)?\b|\bdocs/\w+\.md\b")
OPTIONS: list[Any] = [
    usher.ContextOptions,
    usher.SSPOptions,
    usher.SSPV2Options,
    usher.MultiInstanceOptions,
    usher.DefaultOptions,
    usher.CustomerOptions,
    usher.LoaderOptions,
]
UNITS = {"_ms": r"\bms\b|milliseconds", "_bytes": "bytes", "_permille": "thousandths"}


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Yields each docstring of a module, also those of constants and members, with its line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def described(doc: str) -> dict[str, str]:
    """Returns the text of each option in the docstring of its class."""
    pieces = re.split(r"^(\w+): ", inspect.cleandoc(doc).partition("\n\n")[2], flags=re.M)
    return {name: " ".join(text.split()) for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def test_docstrings_nameNothingThatAWheelLacks() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}:{line}: {name[0]}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if str(file.relative_to(PACKAGE)) not in ABOUT_C and "cli" not in file.relative_to(PACKAGE).parts
        for line, text in texts(file)
        if (name := MISSING_IN_A_WHEEL.search(text))
    ]
    assert found == []


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: str(options.__name__))
def test_option_hasItsTypeUnitAndDefault(options: Any) -> None:
    inherited = {name for base in options.__mro__[1:] for name in getattr(base, "__annotations__", {})}
    own = {name: kind for name, kind in options.__annotations__.items() if name not in inherited}
    words = described(options.__doc__)
    assert words.keys() == own.keys()
    for name, text in words.items():
        assert re.search(r"[Dd]efault|Required", text), name
        for end, unit in UNITS.items():
            assert not name.endswith(end) or re.search(unit, text) or "As in ``SSPOptions``" in text, (name, unit)


def test_headEndSettings_areThoseOfItsConfig() -> None:
    """Each setting that a type checker knows for ``HeadEnd()`` has a description in ``HeadEndConfig``."""
    parameters = inspect.signature(HeadEnd.__init__).parameters
    assert str(parameters["settings"].annotation) == "Unpack[HeadEndSettings]"
    assert {*HeadEndSettings.__annotations__, "clock"} == set(HeadEndConfig.__dataclass_fields__)
    doc = inspect.cleandoc(HeadEndConfig.__doc__ or "")
    assert set(re.findall(r"^    (\w+): ", doc, re.M)) == set(HeadEndConfig.__dataclass_fields__)
