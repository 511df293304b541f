"""Writes the options of the Python bindings (usher/_options.py): types, and the headers' comments in Python's words."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from headers import ROOT, Headers, Structure

from .names import GROUPS, Group
from .python_files import FIRST_LINE, WIDTH
from .python_words import in_python

ERRORS = ROOT / "bindings" / "python" / "src" / "usher" / "_errors.py"


@dataclass(frozen=True)
class Options:
    """A class of options in Python. It has the fields of one or more C structures."""

    python: str
    says: str
    structures: tuple[str, ...]
    base: str = "TypedDict"
    skipped: tuple[str, ...] = ()


CLASSES = [
    Options("ContextOptions", "Options of contexts.", ("usher_context_options",)),
    Options("SSPOptions", "Options of SSP delegates.", ("usher_ssp_options",)),
    Options(
        "SSPV2Options",
        "Options of SSP V2 delegates: those of ``SSPOptions``, except `setup_url`, `setup_body` and `heartbeat_start`, "
        "which SSP V2 delegates ignore; and these. Set both `heartbeat_url` and `teardown_url`, or neither.",
        ("usher_ssp_v2_options",),
        "SSPOptions",
        ("ssp",),
    ),
    Options(
        "MultiInstanceOptions",
        "Options of multi-instance delegates: those of ``SSPOptions``, and the limits of the token map.",
        ("usher_token_map_options",),
        "SSPOptions",
    ),
    Options("DefaultOptions", "Options of default and common delegates.", ("usher_default_options",)),
    Options(
        "CustomerOptions",
        "Options of customer SSM delegates.",
        ("usher_customer_options",),
        skipped=("certificate", "simple_heartbeat"),
    ),
    Options("LoaderOptions", "Options of resource loaders.", ("usher_loader_options",)),
]

TYPES = {
    "allowed_hosts": "Iterable[str] | None",
    "extra_headers": "Mapping[str, str] | str | None",
}
"""The Python types of options that accept more kinds of values than the C type."""
FURTHER = {
    "allowed_hosts": " Give a list of them, or one text.",
    "extra_headers": " Or give a mapping of names to values.",
}
"""What to add to the comments of these options."""


def error_classes() -> dict[str, str]:
    """Returns the exception class of each status, as the table in _errors.py says."""
    return dict(re.findall(r"^    Status\.(\w+): (\w+),$", ERRORS.read_text(encoding="utf-8"), re.M))


def said_in_python(headers: Headers, text: str) -> str:
    """Replaces C names in the comment of an option by the names that Python programs use."""
    errors = error_classes()
    members = {c.name: f"{group.python}.{name}" for group in GROUPS for name, c in group.members(headers)}

    def constant(found: re.Match[str]) -> str:
        name = found[0]
        if name.startswith("USHER_E_"):
            return errors.get(name.removeprefix("USHER_E_"), members.get(name, name))
        return "OFF" if name == "USHER_OFF" else members.get(name, name)

    text = in_python(text)
    for group in GROUPS:  # "USHER_ROUTE_...: where the SPC goes."
        name = f"``{group.python}``"
        text = text.replace(f"{group.prefix}...", name).replace(f"{name} Def", f"{name}. Def")
    text = re.sub(r"\bUSHER_[A-Z0-9_]+\b", constant, text)
    text = re.sub(r"\breturns (\w+Error)\b", r"raises \1", text)
    return text.replace("'\\n'", "line breaks")


def comments(found: Structure) -> dict[str, str]:
    """Returns the comment before each field, as one line of text."""
    pattern = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s+([^;/]*?)(\w+);", re.S)
    return {name: " ".join(text.split()) for text, _, name in pattern.findall(found.body)}


def group_of(text: str) -> Group | None:
    """Returns the enumeration that a comment begins with: "USHER_ROUTE_...: where the SPC goes."."""
    return next((group for group in GROUPS if re.match(rf"(?:[^.:]* )?{group.prefix}\.\.\.", text)), None)


@dataclass(frozen=True)
class Option:
    """An option: its Python type and its comment."""

    name: str
    type: str
    says: str
    enumeration: str = ""


def option(headers: Headers, name: str, kind: str, text: str) -> Option | None:
    """Returns an option for a field of a structure, or None if Python programs do not set the field."""
    if name in ("struct_size", "user_data") or name.endswith(("_user_data", "destroy")) or kind in headers.callbacks:
        return None
    said = said_in_python(headers, text) + FURTHER.get(name, "")
    if kind == "const char *":
        own = "str | os.PathLike[str] | None" if name.endswith("_file") else "str | None"
        required = " Required." in f" {text}" and "except" not in text
        return Option(name, "Required[str]" if required else TYPES.get(name, own), said)
    if kind == "const uint8_t *":
        return Option(name, "bytes | None", said)
    if kind == "int32_t":
        group = group_of(text)
        if group is None:
            said = re.sub(r"^1: ", "True: ", said)
            said = re.sub(r"\bDefault 0\b", "Default False", said)
            return Option(name, "bool", said)
        members = [member.lower() for member, _ in group.members(headers)]
        texts = f" | Literal[{', '.join(map(repr, members))}]".replace("'", '"')
        return Option(name, f"{group.python} | int{texts}", said, group.python)
    if kind in ("uint32_t", "uint64_t", "size_t"):
        return None if name.endswith("_size") else Option(name, "int", said)
    raise ValueError(f"scripts/interface/python_options.py knows no type for the option {name} ({kind})")


def options_of(headers: Headers, wanted: Options) -> list[Option]:
    found = []
    for name in wanted.structures:
        structure = headers.structures[name]
        texts = comments(structure)
        for field in structure.fields:
            if field.name in wanted.skipped:
                continue
            made = option(headers, field.name, field.type, texts.get(field.name, ""))
            if made is not None:
                found.append(made)
    return found


def filled(text: str, indent: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "    ", break_on_hyphens=False)


def declared(made: Option) -> str:
    line = f"    {made.name}: {made.type}\n"
    if len(line) <= WIDTH + 1:
        return line
    return f"    {made.name}: (\n        " + made.type.replace(" | ", "\n        | ") + "\n    )\n"


def largest(found: list[Option]) -> dict[str, int]:
    """Returns the largest values that the comments name: "At most 500."."""
    pattern = re.compile(r"\bAt most (\d+)[.;]")
    return {made.name: int(limit[1]) for made in found if (limit := pattern.search(made.says))}


def table(values: dict[str, str]) -> str:
    return "".join(f'    "{name}": {value},\n' for name, value in sorted(values.items()))


def options(headers: Headers) -> str:
    classes: list[str] = []
    enumerations: dict[str, str] = {}
    limits: dict[str, str] = {}
    for wanted in CLASSES:
        found = options_of(headers, wanted)
        enumerations |= {made.name: made.enumeration for made in found if made.enumeration}
        limits |= {name: str(limit) for name, limit in largest(found).items()}
        says = f'{wanted.says} 0 and None mean the default; OFF means "none".'
        head = textwrap.fill(f'"""{says}', WIDTH, initial_indent="    ", subsequent_indent="    ")
        lines = "\n".join(filled(f"{made.name}: {made.says}", "    ") for made in found)
        fields = "".join(map(declared, found))
        classes.append(f'class {wanted.python}({wanted.base}, total=False):\n{head}\n\n{lines}\n    """\n\n{fields}')
    structures = {wanted.python: str(wanted.structures).replace("'", '"') for wanted in CLASSES}
    used = sorted(set(enumerations.values()))
    imports = "from ._c.enums import (\n" + "".join(f"    {name},\n" for name in used) + ")"
    return (
        f'{FIRST_LINE}\n"""The options of contexts, delegates and resource loaders, with their types, units and '
        'defaults."""\n\nfrom __future__ import annotations\n\nimport os\n'
        "from collections.abc import Iterable, Mapping\nfrom enum import IntEnum\n"
        "from typing import TYPE_CHECKING, Literal\n\n"
        f"{imports}\n\nif TYPE_CHECKING:\n    from typing import TypedDict\n\n"
        "    from typing_extensions import Required\nelse:\n    from ._checked import Options as TypedDict\n\n\n"
        + "\n\n".join(classes)
        + f"\n\nENUMERATIONS: dict[str, type[IntEnum]] = {{\n{table(enumerations)}}}\n"
        '"""The enumeration of each option that has one."""\n\n'
        f"LARGEST = {{\n{table(limits)}}}\n"
        '"""The largest values of some options. For all other numbers, Python checks only the limit of the C type."""\n'
        f"STRUCTURES: dict[str, tuple[str, ...]] = {{\n{table(structures)}}}\n"
        '"""The C structures that have the options of each class. A class also has the options of its base class."""\n'
    )
