"""Writes the declarations of the Python bindings (usher/_c/abi.py) and their constants (usher/_c/enums.py)."""

from __future__ import annotations

import re
import textwrap

from headers import Function, FunctionType, Headers, Parameter, Structure

from .c_files import wrapped
from .names import GROUPS
from .python_words import class_name, in_python

WIDTH = 120
FIRST_LINE = "# Generated from include/usher/*.h by scripts/generate. Change the headers, then run `make generate`."
C_TYPES = {
    "double": "c_double",
    "int": "c_int",
    "int32_t": "c_int32",
    "uint32_t": "c_uint32",
    "int64_t": "c_int64",
    "uint64_t": "c_uint64",
    "size_t": "c_size_t",
    "uint8_t": "c_uint8",
    "char": "c_char",
    "const char *": "c_char_p",
    "void *": "c_void_p",
    "const usher_api *": "c_void_p",
    "void": "None",
}


def handle_name(c_name: str) -> str:
    return f"{class_name(c_name)}Handle"


def ctype(headers: Headers, kind: str) -> str:
    """Returns the ctypes expression for a C type."""
    if kind in C_TYPES:
        return C_TYPES[kind]
    if kind in headers.numbers:
        return C_TYPES[headers.numbers[kind]]
    if kind in headers.callbacks or kind in headers.structures:
        return class_name(kind)
    if array := re.fullmatch(r"(\w+)\[(\d+)\]", kind):
        return f"{ctype(headers, array[1])} * {array[2]}"
    bare = kind.removeprefix("const ")
    if not bare.endswith("*"):
        raise ValueError(f"scripts/interface/python_files.py knows no ctypes type for {kind!r}: add it to C_TYPES")
    inner = bare[:-1].strip()
    return handle_name(inner) if inner in headers.handles else f"POINTER({ctype(headers, inner)})"


def tuple_of(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


# ---- abi.py ----------------------------------------------------------------------------------------------------------


def handle(name: str) -> str:
    return f'class {handle_name(name)}(c_void_p):\n    """``{name} *``"""\n'


def structure(headers: Headers, found: Structure) -> str:
    fields = "".join(f'        ("{field.name}", {ctype(headers, field.type)}),\n' for field in found.fields)
    head = f'class {class_name(found.name)}(ctypes.Structure):\n    """``{found.name}``"""\n\n'
    return f"{head}    _fields_ = [\n{fields}    ]\n"


def comment(head: str, parameters: tuple[Parameter, ...], indent: str = "") -> str:
    """Returns the declaration as a comment, in lines of at most 120 columns."""
    parts = [parameter.text for parameter in parameters] or ["void"]
    lines = wrapped(head, parts, ");", 2, WIDTH - len(indent) - len("# "))
    return "".join(f"{indent}# {line}\n" for line in lines)


def callback(headers: Headers, found: FunctionType) -> str:
    head = f"typedef {found.result} (*{found.name})("
    types = ", ".join([ctype(headers, found.result), *(ctype(headers, kind) for kind in found.types)])
    return f"{comment(head, found.parameters)}{class_name(found.name)} = CFUNCTYPE({types})\n"


def prototype(headers: Headers, function: Function) -> str:
    result, types = ctype(headers, function.result), tuple_of([ctype(headers, kind) for kind in function.types])
    line = f'    "{function.name}": ({result}, {types}),'
    if len(line) > WIDTH:
        line = f'    "{function.name}": (\n        {result},\n        {types},\n    ),'
    gap = "" if function.result.endswith("*") else " "
    return comment(f"{function.result}{gap}{function.name}(", function.parameters, "    ") + line + "\n"


def table(name: str, kind: str, says: str, rows: dict[str, str]) -> str:
    lines = "".join(f'    "{key}": {value},\n' for key, value in sorted(rows.items()))
    return f'{name}: dict[str, {kind}] = {{\n{lines}}}\n"""{says}"""\n'


def section(title: str) -> str:
    return f"# ---- {title} " + "-" * (WIDTH - len(title) - 8) + "\n"


def declared_in_order(headers: Headers) -> list[Structure | FunctionType]:
    """Returns structures and callback types in the order of the headers, so that each comes after those it uses."""
    found: list[Structure | FunctionType] = []
    for text in headers.texts.values():
        names = re.findall(r"^typedef struct (usher_\w+) \{|^typedef \w+ \(\*(usher_\w+)\)", text, re.M)
        for struct, function in names:
            if struct in headers.structures:
                found.append(headers.structures[struct])
            elif function:
                found.append(headers.callbacks[function])
    return found


def abi(headers: Headers) -> str:
    declared, was_structure = "", False
    for item in declared_in_order(headers):
        is_structure = isinstance(item, Structure)
        text = structure(headers, item) if isinstance(item, Structure) else callback(headers, item)
        declared += ("\n\n" if declared and (is_structure or was_structure) else "") + text
        was_structure = is_structure
    prototypes = "".join(prototype(headers, function) for function in headers.functions.values())
    parts = [
        f'VERSION = {headers.version!r}\n"""USHER_VERSION_MAJOR, _MINOR, _PATCH of the headers."""\n\n'
        'OFF = 0xFFFFFFFF\n"""USHER_OFF: the value for "none" in options for which 0 means "the default"."""\n',
        section("handles: numbers that identify objects, never addresses"),
        *map(handle, headers.handles),
        section("structures and callback types"),
        declared,
        table(
            "STRUCTURES",
            "type[ctypes.Structure]",
            "C name -> ctypes structure, every structure of the headers.",
            {name: class_name(name) for name in headers.structures},
        )
        + "\n"
        + table(
            "CALLBACKS",
            "Any",
            "C name -> ctypes function type, every callback type of the headers.",
            {name: class_name(name) for name in headers.callbacks},
        ),
        section("prototypes"),
        f"PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {{\n{prototypes}}}\n"
        '"""C name -> (result, arguments), every function of the headers."""\n',
    ]
    body = "\n\n".join(parts)
    used = sorted(set(re.findall(r"\b(CFUNCTYPE|POINTER|c_\w+)\b", re.sub(r"#.*", "", body))), key=natural)
    imports = "".join(f"    {name},\n" for name in used)
    return (
        f'{FIRST_LINE}\n"""The C contract as ctypes declarations: handles, structures, callback types, prototypes. '
        'Loads no library."""\n\nfrom __future__ import annotations\n\nimport ctypes\n'
        f"from ctypes import (\n{imports})\nfrom typing import Any\n\n{body}"
    )


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Returns a sort key: names in capitals first, and c_uint8 before c_uint32."""
    parts = re.findall(r"\d+|\D+", name)
    return [(not name.isupper(), int(part) if part.isdigit() else -1, part) for part in parts]


# ---- enums.py --------------------------------------------------------------------------------------------------------

ENUMS_HEAD = f'''\
{FIRST_LINE}
"""The constants of the headers as enumerations."""

from __future__ import annotations

from enum import Enum, IntEnum


class OpenIntEnum(IntEnum):
    """An IntEnum that accepts unknown numbers, because a newer library may return numbers that it does not list."""

    @classmethod
    def _missing_(cls, value: object) -> OpenIntEnum | None:
        if not isinstance(value, int):
            return None
        unknown = int.__new__(cls, value)
        unknown._name_ = f"UNKNOWN_{{value}}"
        unknown._value_ = value
        return unknown
'''


def member_docs(headers: Headers, python: str, constant: str) -> str:
    """Returns the header's comment on a constant as the docstring of an enumeration's member: indented, and with the
    Python names of constants. Returns nothing if the header has no comment there."""
    names = {
        other.name: name if group.python == python else f"{group.python}.{name}"
        for group in GROUPS
        for name, other in group.members(headers)
    }
    text = headers.constant_comments.get(constant, "")
    if not text:
        return ""
    text = re.sub(r"\bUSHER_[A-Z0-9_]+\b", lambda found: names.get(found[0], found[0]), in_python(text))
    return (
        textwrap.fill(f'"""{text}"""', WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
        + "\n"
    )


def enums(headers: Headers) -> str:
    classes = [ENUMS_HEAD]
    for group in GROUPS:
        members = list(group.members(headers))
        is_text = all(constant.number is None for _, constant in members)
        base = "str, Enum" if is_text else "OpenIntEnum" if group.is_open else "IntEnum"
        first = " and ".join([*group.also, f"{group.prefix}*"])
        values = "".join(
            f"    {name} = {constant.value if is_text else constant.number}\n"
            + member_docs(headers, group.python, constant.name)
            for name, constant in members
        )
        says = textwrap.fill(
            f'"""{group.says[0].upper()}{group.says[1:]} In C: {first}."""',
            WIDTH,
            initial_indent="    ",
            subsequent_indent="    ",
        )
        classes.append(f"class {group.python}({base}):\n{says}\n\n{values}")
    return "\n\n".join(classes)
