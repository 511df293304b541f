"""Writes the type of the settings that HeadEnd() takes as keywords, from the fields of HeadEndConfig."""

from __future__ import annotations

import ast

from headers import ROOT, Headers

FOLDER = ROOT / "bindings" / "python" / "src" / "usher" / "testing" / "headend"
FIRST_LINE = "# Generated from config.py by scripts/generate. Change config.py, then run `make generate`."
OWN = "clock"
"""The field for which HeadEnd() has a parameter of its own, which also takes a clock object."""
BUILT_IN = {"bool", "bytes", "float", "frozenset", "int", "str", "tuple"}


def _names(kind: str) -> set[str]:
    """Returns the names in an annotation that must be imported."""
    return {node.id for node in ast.walk(ast.parse(kind)) if isinstance(node, ast.Name)} - BUILT_IN


def settings(headers: Headers) -> str:
    """Returns the text of settings.py. Does not use `headers`, the parameter that all writers have."""
    module = ast.parse((FOLDER / "config.py").read_text(encoding="utf-8"))
    config = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "HeadEndConfig")
    fields = {
        node.target.id: ast.unparse(node.annotation)
        for node in config.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id != OWN
    }
    needed = set().union(*map(_names, fields.values()))
    lines: dict[str, set[str]] = {}
    for node in module.body:
        if isinstance(node, ast.ImportFrom):
            origin = f"{'.' * node.level}{node.module or ''}"
            lines.setdefault(origin, set()).update({alias.name for alias in node.names} & needed)
    imported = set().union(*lines.values())
    lines[".config"] = needed - imported
    order = sorted((origin for origin in lines if lines[origin]), key=lambda origin: (origin.startswith("."), origin))
    inside = [origin for origin in order if origin.startswith(".")]
    outside = [origin for origin in order if not origin.startswith(".")]

    def imports(origins: list[str], indent: str) -> str:
        def sorted_names(origin: str) -> str:
            return ", ".join(sorted(lines[origin], key=lambda name: (not name.isupper(), name)))

        return "".join(f"{indent}from {origin} import {sorted_names(origin)}\n" for origin in origins)

    declared = "".join(f"    {name}: {kind}\n" for name, kind in fields.items())
    return (
        f'{FIRST_LINE}\n"""The settings of a head-end as keywords of ``HeadEnd()``, for type checkers."""\n\n'
        "from __future__ import annotations\n\n"
        f"{imports(outside, '')}from typing import TYPE_CHECKING, TypedDict\n\n"
        f"if TYPE_CHECKING:\n{imports(inside, '    ')}\n\n"
        "class HeadEndSettings(TypedDict, total=False):\n"
        '    """The fields of ``HeadEndConfig``, which describes them."""\n\n'
        f"{declared}"
    )
