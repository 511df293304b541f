"""Writes the tables of docs/options.md: every option, from the comments of the headers."""

from __future__ import annotations

import ast
import re
from functools import cache

from headers import ROOT, Headers, Parameter, Structure

from .names import GROUPS
from .python_options import CLASSES, comments, group_of, option
from .sizes import RELEASES, releases

PACKAGE = ROOT / "bindings" / "python" / "src" / "usher"

TITLES = {
    "usher_context_options": "Context",
    "usher_playback_options": "Playback",
    "usher_ssp_options": "SSP delegate",
    "usher_ssp_v2_options": "SSP V2 delegate",
    "usher_token_map_options": "Multi-instance delegate",
    "usher_default_options": "Default and common delegate",
    "usher_customer_options": "Customer SSM delegate",
    "usher_loader_options": "Resource loader",
}
"""The structures in the order of the page, each with its heading."""
SIGNATURES = {
    "usher_context_options": ("context.py", "Context", "__init__"),
    "usher_playback_options": ("player.py", "Player", "play"),
    "usher_customer_options": ("delegates/customer.py", "CustomerDelegate", "__init__"),
    "usher_loader_options": ("loader.py", "ResourceLoader", "__init__"),
}
"""The Python methods that take options of these structures as parameters of their own."""
RENAMED = {"simple_heartbeat": "heartbeat"}
"""The Python names of options that have another name in C."""
SAME = "same"
"""What the page says if both names are the same."""
UNITS = {
    "_ms": "ms",
    "_bytes": "bytes",
    "_permille": "thousandths",
    "_url": "URL",
    "_file": "path",
    "guardian_path": "path",
}
"""What the end of an option's name says about its value."""
TYPES = {"const char *": "text", "const uint8_t *": "bytes", "uint32_t": "number", "uint64_t": "number"}


def is_option(field: Parameter) -> bool:
    """Whether a host sets the field to choose an option. The other fields are struct_size, and the user data, destroy
    function or size that belong to another field."""
    if field.name in ("struct_size", "user_data", "destroy"):
        return False
    return not field.name.endswith(("_user_data", "_destroy", "_size"))


@cache
def parameters(file: str, class_name: str, method: str) -> set[str]:
    """Returns the names of the parameters of a Python method."""
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    (owner,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name)
    (found,) = (node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == method)
    return {argument.arg for argument in (*found.args.args, *found.args.kwonlyargs)}


def python_name(headers: Headers, structure: Structure, field: Parameter, comment: str) -> str:
    """Returns the keyword of an option in Python; "" if Python programs do not set the option."""
    name = RENAMED.get(field.name, field.name)
    if structure.name in SIGNATURES and name in parameters(*SIGNATURES[structure.name]):
        return name
    for wanted in CLASSES:
        if structure.name in wanted.structures and field.name not in wanted.skipped:
            made = option(headers, field.name, field.type, comment)
            return made.name if made else ""
    return ""


def first_sentence(text: str) -> str:
    """Returns the text until the first full stop that ends a sentence, without the full stop."""
    return re.split(r"(?<!e\.g)(?<!\.\.)\.(?= |$)", text, maxsplit=1)[0]


def default(field: Parameter, comment: str) -> str:
    if found := re.search(r"\b(?:Required|Not NULL)\b(.*)", comment):
        return "required" + first_sentence(found[1])
    if found := re.search(r"\bDefault: (.*?)(?:;|(?<!\.)\.(?= |$))", comment):
        group = group_of(comment)
        return found[1].removeprefix(group.prefix if group else "")
    is_number = field.type in ("uint32_t", "uint64_t", "size_t")
    if found := re.search(rf"\bDefault (.*?)(?:[{'' if is_number else ':'};]|\.(?= |$))", comment):
        return found[1]
    return "none" if field.type.endswith("*") else "0"


def unit(headers: Headers, field: Parameter, comment: str) -> str:
    group = group_of(comment)
    if group is not None:
        return f"`{group.prefix}*`"
    if field.type in headers.callbacks:
        return "callback"
    if field.type == "int32_t":
        return "0 or 1"
    for end, says in UNITS.items():
        if field.name.endswith(end):
            return says
    return TYPES.get(field.type, f"`{field.type.rstrip(' *')}`".replace("const ", "")).replace("`size_t`", "number")


def meaning(comment: str) -> str:
    """Returns the first sentence of the comment; if the comment only names an enumeration, the text of its `Group`."""
    said = re.sub(r"\bDefault\b.*", "", comment).strip() or comment
    for group in GROUPS:
        if said.startswith(f"{group.prefix}..."):
            said = said.removeprefix(f"{group.prefix}...").lstrip(": ") or group.says.replace("``", "`")
    said = re.sub(r", (?:ms|bytes)(?=[,;]|$)", "", first_sentence(said))
    return said[0].upper() + said[1:] + "."


def as_code(text: str) -> str:
    """Returns a text with backquotes around each name, and around each text that is in quotation marks. Escapes `|`,
    which would end the cell of a table."""
    pattern = r'`[^`]*`|\b(?:usher|USHER)_\w+(?:\(\)|\.\.\.)?|"[^"]*"'
    text = re.sub(pattern, lambda found: found[0] if found[0].startswith("`") else f"`{found[0]}`", text)
    return text.replace("...`", "*`").replace("|", "\\|")


def since(headers: Headers) -> dict[tuple[str, str], str]:
    """Returns the first recorded release that has a field of a structure; fields that no release has are missing."""
    found: dict[tuple[str, str], str] = {}
    for release in releases(RELEASES, headers.version[0]):
        for structure in Headers(release / "include").structures.values():
            for field in structure.fields:
                found.setdefault((structure.name, field.name), release.name)
    return found


def tables(headers: Headers) -> str:
    names = [name for name in headers.structures if name.endswith("_options")]
    if sorted(names) != sorted(TITLES):
        raise ValueError(f"scripts/interface/options_page.py has no heading for {', '.join({*names} ^ {*TITLES})}")
    known, now = since(headers), "{}.{}".format(*headers.version)
    parts = []
    for name, title in TITLES.items():
        structure = headers.structures[name]
        texts = comments(structure)
        lines = [
            f"## {title}",
            "",
            f"`{name}` in [{structure.header}](../include/usher/{structure.header}).",
            "",
            "| C | Python | value | default | what it does | since |",
            "|---|---|---|---|---|---|",
        ]
        for field in filter(is_option, structure.fields):
            comment = texts[field.name]
            python = python_name(headers, structure, field, comment)
            in_python = SAME if python == field.name else f"`{python}`" if python else "-"
            cells = [f"`{field.name}`", in_python, unit(headers, field, comment)]
            cells += [as_code(default(field, comment)), as_code(meaning(comment))]
            lines.append(f"| {' | '.join([*cells, known.get((name, field.name), now)])} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
