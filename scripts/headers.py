#!/usr/bin/env python3
"""Reads the public headers, include/usher/*.h and hpp/*.hpp. Scripts and tests that need their declarations use this.

    from headers import Headers
    Headers().functions["usher_version"].result

Shell scripts call it as a program, which prints one name in each line:

    scripts/headers.py [--include FOLDER] functions | members | inits | sized | since | constants PREFIX HEADER

Standard library only.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
TABLE = "usher_api"
"""The name of the structure that has a pointer to every function."""
LABELS = ("Threads", "In callbacks", "Waits", "Pumping thread", "Units", "Since", "Deprecated")
"""The labels that the last lines of a function's comment may have: "Label: text." """
SIZED_BY_THE_LIBRARY = (
    "usher_event",
    "usher_notice",
    "usher_hook_call",
    "usher_customer_request",
    "usher_spc_request",
    "usher_server_request",
    "usher_protection",
)
"""Structures that the library fills and passes to callbacks. The library also sets their struct_size, so they have no
..._INIT."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function or callback, or a field of a structure."""

    type: str
    """The C type, e.g. "const uint8_t *" or "uint8_t[16]"."""
    name: str

    @staticmethod
    def read(text: str) -> Parameter:
        found = re.fullmatch(r"(.*?[\s*])(\w+)((?:\[\d+\])?)", " ".join(text.split()))
        if not found:
            raise ValueError(f"not a parameter or field: {text.strip()!r}")
        return Parameter(found[1].strip() + found[3], found[2])

    @staticmethod
    def read_list(text: str) -> tuple[Parameter, ...]:
        return () if text.strip() == "void" else tuple(map(Parameter.read, text.split(",")))

    @property
    def text(self) -> str:
        return f"{self.type}{'' if self.type.endswith('*') else ' '}{self.name}"


@dataclass(frozen=True)
class Function:
    """A function that the library exports."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]
    comment: str
    header: str

    @property
    def member(self) -> str:
        """The function's name in the table of functions."""
        return self.name.removeprefix("usher_")

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(parameter.type for parameter in self.parameters)

    @cached_property
    def labels(self) -> dict[str, str]:
        """The text after each label of the comment, e.g. after "In callbacks:"."""
        text = " ".join(re.sub(r"\n ?\* ?", "\n", self.comment).split())
        label = "|".join(LABELS)
        found = re.findall(rf"\b({label}): (.*?)\.?(?= (?:{label}): |$)", text)
        return dict(found)


@dataclass(frozen=True)
class Structure:
    """A structure with its fields in order."""

    name: str
    fields: tuple[Parameter, ...]
    body: str
    """The text between the braces of the structure, including comments."""
    header: str

    @property
    def is_sized(self) -> bool:
        return bool(self.fields) and self.fields[0] == Parameter("size_t", "struct_size")


@dataclass(frozen=True)
class FunctionType:
    """A typedef of a pointer to a function."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]
    header: str

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(parameter.type for parameter in self.parameters)


@dataclass(frozen=True)
class Constant:
    """A #define with a value."""

    name: str
    value: str
    """The value's text in the header, e.g. "(-24)"."""
    header: str

    @property
    def number(self) -> int | None:
        found = re.fullmatch(r"\(?(-?\d+)\)?", self.value)
        return int(found[1]) if found else None


class Headers:
    """All headers of one folder. Each comes after the headers that it includes, so that names are declared first."""

    def __init__(self, include: Path = INCLUDE) -> None:
        self.folder = include / "usher"
        self.texts: dict[str, str] = {}
        """The text of each header, by file name."""
        self._read("usher.h")
        self.plain = {name: re.sub(r"/\*.*?\*/", " ", text, flags=re.S) for name, text in self.texts.items()}
        """The texts without comments."""

    def _read(self, name: str) -> None:
        """Reads the headers that this header includes, then the header."""
        text = (self.folder / name).read_text(encoding="utf-8")
        for included in re.findall(r'^#include "(\w+\.h)"$', text, re.M):
            if included not in self.texts:
                self._read(included)
        self.texts[name] = text

    @property
    def text(self) -> str:
        return "\n".join(self.texts.values())

    @cached_property
    def functions(self) -> dict[str, Function]:
        pattern = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\nUSHER_API ([\w\s]+?[\s*]+)(usher_\w+)\(([^)]*)\);", re.S)
        found = {}
        for header, text in self.texts.items():
            for comment, result, name, arguments in pattern.findall(text):
                parameters = Parameter.read_list(arguments)
                found[name] = Function(name, " ".join(result.split()), parameters, comment, header)
            marked = re.findall(r"^USHER_API [^(]*?\b(usher_\w+)\(", text, re.M)
            missing = [name for name in marked if name not in found]
            if missing or len(marked) != len(re.findall(r"^USHER_API\b", text, re.M)):
                names = ", ".join(missing) or "a function"
                raise ValueError(f"{header}: {names}: write its comment, /** ... */, right before its declaration")
        return found

    @cached_property
    def _bodies(self) -> list[Structure]:
        found = []
        for header, text in self.texts.items():
            for name, body in re.findall(r"^typedef struct (usher_\w+) \{(.*?)^\} \1;", text, re.M | re.S):
                plain = re.sub(r"/\*.*?\*/", " ", body, flags=re.S)
                if name == TABLE:
                    fields = [field for field in plain.split(";")[:1] if field.strip()]
                else:
                    fields = [field for field in plain.split(";") if field.strip()]
                found.append(Structure(name, tuple(map(Parameter.read, fields)), body, header))
        return found

    @cached_property
    def structures(self) -> dict[str, Structure]:
        """All structures except the table of functions."""
        return {structure.name: structure for structure in self._bodies if structure.name != TABLE}

    @cached_property
    def table(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """The table of functions in api.h: maps each function, in order, to its result and its parameters' types."""
        (body,) = (structure.body for structure in self._bodies if structure.name == TABLE)
        first, *fields = [field.strip() for field in re.sub(r"/\*.*?\*/", " ", body, flags=re.S).split(";")][:-1]
        if first != "size_t struct_size":
            raise ValueError(f"{TABLE}: struct_size must be its first field")
        found = {}
        for field in fields:
            declared = re.fullmatch(r"([\w\s]+?[\s*]+)\(\*(\w+)\)\(([^)]*)\)", field)
            if not declared:
                raise ValueError(f"{TABLE}: not a pointer to a function: {field}")
            types = tuple(parameter.type for parameter in Parameter.read_list(declared[3]))
            found[f"usher_{declared[2]}"] = (declared[1].strip(), types)
        return found

    @cached_property
    def function_types(self) -> dict[str, FunctionType]:
        pattern = re.compile(r"^typedef ([\w\s]+?[\s*]*)\(\*(usher_\w+_fn)\)\(([^)]*)\);", re.M)
        return {
            name: FunctionType(name, result.strip(), Parameter.read_list(arguments), header)
            for header, plain in self.plain.items()
            for result, name, arguments in pattern.findall(plain)
        }

    @property
    def callbacks(self) -> dict[str, FunctionType]:
        """Types of functions that the host gives the library: all except the type of usher_get_api()."""
        return {name: found for name, found in self.function_types.items() if not found.result.endswith("*")}

    @cached_property
    def handles(self) -> list[str]:
        return re.findall(r"^typedef struct (usher_\w+) \1;", self.text, re.M)

    @cached_property
    def numbers(self) -> dict[str, str]:
        """Typedefs of plain types by name, e.g. usher_completion: uint64_t."""
        return {name: kind for kind, name in re.findall(r"^typedef (\w+) (usher_\w+);", self.text, re.M)}

    @cached_property
    def macros(self) -> list[str]:
        """All #defines except the include guards."""
        found = dict.fromkeys(re.findall(r"^ *#define (USHER_\w+)", self.text, re.M))
        return [name for name in found if not name.endswith("_H")]

    @cached_property
    def constants(self) -> dict[str, Constant]:
        """All #defines of a number or a text."""
        return {
            name: Constant(name, value, header)
            for header, plain in self.plain.items()
            for name, value in re.findall(r"^#define (USHER_[A-Z0-9_]+)[ \t]+(\S.*?)\s*$", plain, re.M)
            if not name.endswith("_INIT") and name != "USHER_API"
        }

    @cached_property
    def constant_comments(self) -> dict[str, str]:
        """The comment right before a #define, as one line of text, for each constant that has one."""
        pattern = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\n#define (USHER_[A-Z0-9_]+)[ \t]", re.S)
        return {name: " ".join(comment.split()) for comment, name in pattern.findall(self.text)}

    @property
    def inits(self) -> dict[str, str]:
        """The ..._INIT of each structure that has one."""
        return {name.removesuffix("_INIT").lower(): name for name in self.macros if name.endswith("_INIT")}

    @property
    def version(self) -> tuple[int, int, int]:
        major, minor, patch = (
            int(self.constants[f"USHER_VERSION_{part}"].value) for part in ("MAJOR", "MINOR", "PATCH")
        )
        return major, minor, patch

    def takes_destroy(self) -> set[str]:
        """Returns the functions that have a parameter `destroy`, and the structures that have a field `destroy`."""
        direct = {name for name, function in self.functions.items() if "usher_destroy_fn" in function.types}
        inside = {
            name
            for name, found in self.structures.items()
            if "usher_destroy_fn" in (field.type for field in found.fields)
        }
        return direct | inside

    @cached_property
    def cpp_names(self) -> list[str]:
        """The names that usher.hpp declares in namespace usher, sorted."""
        text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((self.folder / "hpp").glob("*.hpp")))
        text = re.sub(r"^namespace (detail|words) \{.*?^\} // namespace \1$", "", text, flags=re.M | re.S)
        types = r"^(?:class|struct|enum class|using|namespace) (?:\[\[nodiscard\]\] )?(\w+)(?: [={:]| final)"
        functions = r"^(?:inline (?:constexpr )?[\w:&*<> ]+?[ &*]|auto )(\w+)[({]"
        return sorted({*re.findall(types, text, re.M), *re.findall(functions, text, re.M)} - {"usher", "std"})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--include", type=Path, default=INCLUDE, metavar="FOLDER", help="the folder that has usher/*.h")
    parser.add_argument("what", choices=["functions", "members", "inits", "sized", "since", "constants"])
    parser.add_argument("more", nargs="*", help="of constants: PREFIX HEADER")
    arguments = parser.parse_args()
    headers = Headers(arguments.include)
    if arguments.what == "functions":
        found = list(headers.functions)
    elif arguments.what == "members":
        found = [name.removeprefix("usher_") for name in headers.table]
    elif arguments.what == "inits":
        found = [f"{structure} {macro}" for structure, macro in headers.inits.items()]
    elif arguments.what == "sized":
        found = [
            name
            for name, structure in headers.structures.items()
            if structure.is_sized and name not in SIZED_BY_THE_LIBRARY
        ]
    elif arguments.what == "since":
        found = [f"{name} {function.labels.get('Since', '')}" for name, function in headers.functions.items()]
    else:
        prefix, header = arguments.more
        found = [c.name for c in headers.constants.values() if c.name.startswith(prefix) and c.header == header]
    print("\n".join(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
