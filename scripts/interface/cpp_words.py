"""The enumerations of include/usher/hpp/words.hpp."""

from __future__ import annotations

from headers import Headers

from .names import GROUPS, Group

WIDTH = 120


def enumeration(headers: Headers, group: Group) -> str:
    members = list(group.members(headers))
    says = f"/** {group.cpp_says} */\n" if group.cpp_says else ""
    if all(constant.number is None for _, constant in members):
        lines = (
            f"inline constexpr const char *{group.cpp_name(name)} = {constant.name};\n" for name, constant in members
        )
        return f"{says}namespace {group.cpp} {{\n{''.join(lines)}}} // namespace {group.cpp}\n"
    values = [f"{name} = {value}" for name, value in group.cpp_also.items()]
    values += [f"{group.cpp_name(name)} = {constant.name}" for name, constant in members]
    line = f"enum class {group.cpp} : int32_t {{ {', '.join(values)} }};"
    if len(line) > WIDTH:
        line = f"enum class {group.cpp} : int32_t {{\n  " + ",\n  ".join(values) + "\n};"
    return f"{says}{line}\n"


def enumerations(headers: Headers) -> str:
    return "\n".join(enumeration(headers, group) for group in GROUPS)
