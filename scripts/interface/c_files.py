"""Writes the table of functions in api.h and in Swift, and Tests/c/functions.h."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headers import Function, Headers, Parameter

WIDTH = 120


def wrapped(head: str, parts: list[str], tail: str, indent: int = 6, width: int = WIDTH) -> list[str]:
    """Returns the lines of `head`, the parts with commas, and `tail`, joined as clang-format does it: in one line if
    that fits; otherwise with all parts in a second line; otherwise with as many parts in each line as fit."""
    whole = head + ", ".join(parts) + tail
    if len(whole) <= width:
        return [whole]
    second = " " * indent + ", ".join(parts) + tail
    if len(second) <= width:
        return [head.rstrip(), second]
    lines = [head]
    for index, part in enumerate(parts):
        piece = part + (tail if index == len(parts) - 1 else ",")
        joined = lines[-1] + (" " if index else "") + piece
        if len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(" " * indent + piece)
    return lines


def api_table(headers: Headers, order: list[str]) -> str:
    """Returns the declarations of the members of usher_api, in order."""
    lines = []
    for name in order:
        function = headers.functions[name]
        result = function.result + ("" if function.result.endswith("*") else " ")
        parts = [parameter.text for parameter in function.parameters] or ["void"]
        lines += wrapped(f"  {result}(*{function.member})(", parts, ");")
    return "\n".join(lines) + "\n"


SWIFT = """\
// Generated from include/usher/*.h by scripts/generate. Change the headers, then run `make generate`.
public import CUsher

/// The table that `usher_get_api` returns: every export by its name without `usher_`.
private nonisolated(unsafe) let table: UnsafePointer<usher_api> = {{
  let storage = UnsafeMutablePointer<usher_api>.allocate(capacity: 1)
  storage.initialize(
    to: usher_api(
      struct_size: MemoryLayout<usher_api>.size,
{members}))
  return UnsafePointer(storage)
}}()

/// Implements `usher_get_api`; contract in `include/usher/api.h`.
@_cdecl("usher_get_api") @implementation
public func usher_get_api(_ major: UInt32) -> UnsafePointer<usher_api>! {{
  major == UInt32(USHER_VERSION_MAJOR) ? table : nil
}}
"""


def swift_table(headers: Headers, order: list[str]) -> str:
    return SWIFT.format(members=",\n".join(f"      {headers.functions[name].member}: {name}" for name in order))


# ---- every function, for C tests and fuzzers -------------------------------------------------------------------------

FUNCTIONS_H = """\
// Generated from include/usher/*.h by scripts/generate. Change the headers, then run `make generate`.
// clang-format off
/*
 * functions.h - every function, structure and callback type of the headers, for tests that use all of them.
 * A test defines the macros that it needs and includes this file:
 *
 *   FUNCTION(name, result, takes, arguments)  result: STATUS or POINTER; takes: HANDLE, FREES (a handle) or NOTHING;
 *                                             arguments: in brackets, for each parameter a macro of plain.h
 *   STRUCTURE(type, init, destroys)           init: its ..._INIT, or {{0}}; destroys: 1 if a field is usher_destroy_fn
 *   CALLBACK_TYPE(type, result, parameters, ...)  ...: the body: a cast to void of each parameter, and what it returns
 */
#ifdef CALLBACK_TYPE
{callbacks}
#endif
#ifdef STRUCTURE
{structures}
#endif
#ifdef FUNCTION
{functions}
#endif
"""


def argument(headers: Headers, parameter: Parameter, before: Parameter | None) -> str:
    """Returns the macro of plain.h that makes an argument for this parameter."""
    kind = parameter.type
    bare = kind.removeprefix("const ").rstrip("* ")
    fixed = {
        "const char *": "ARG_TEXT",
        "const uint8_t *": "ARG_BYTES",
        "uint8_t *": "ARG_BUFFER",
        "char *": "ARG_MESSAGE",
        "void *": "ARG_USER_DATA",
        "usher_destroy_fn": "ARG_DESTROY",
        "usher_completion": "ARG_COMPLETION",
    }
    if before and (before.type, kind) == ("const uint8_t *", "size_t") and not parameter.name.endswith("_count"):
        return "ARG_SIZE"
    if before and (before.type, kind) == ("char *", "size_t"):
        return "ARG_MESSAGE_SIZE"
    if before and (before.type, kind) == ("uint8_t *", "size_t *"):
        return "ARG_BUFFER_SIZE"
    if kind in fixed:
        return fixed[kind]
    if kind in headers.callbacks:
        return f"ARG_CALLBACK({kind})"
    if bare in headers.handles:
        return f"ARG_OUT_HANDLE({bare})" if kind.endswith("**") else f"ARG_HANDLE({bare})"
    if bare in headers.structures:
        return f"ARG_OPTIONS({bare})" if kind.startswith("const ") else f"ARG_FILLED({bare})"
    return f"ARG_OUT({bare})" if kind.endswith("*") else f"ARG_NUMBER({kind})"


def function_line(headers: Headers, function: Function) -> str:
    result = "STATUS" if function.result == "int32_t" else "POINTER"
    made = [
        argument(headers, parameter, function.parameters[index - 1] if index else None)
        for index, parameter in enumerate(function.parameters)
    ]
    takes = "NOTHING"
    if any(macro.startswith("ARG_HANDLE(") for macro in made):
        takes = "FREES" if function.name.endswith("_free") else "HANDLE"
    return "\n".join(wrapped(f"FUNCTION({function.name}, {result}, {takes}, (", made, "))", 4))


def functions_h(headers: Headers) -> str:
    callbacks = []
    for callback in headers.callbacks.values():
        given = ", ".join(parameter.text for parameter in callback.parameters)
        casts = ", ".join(f"(void){parameter.name}" for parameter in callback.parameters)
        body = casts if callback.result == "void" else f"{casts}; return 0"
        callbacks += wrapped(f"CALLBACK_TYPE({callback.name}, {callback.result}, ", [f"({given})", body], ")", 4)
    takers = headers.takes_destroy()
    zeros = {
        name: f"{{.{found.fields[0].name} = {{0}}}}" if found.fields[0].type.endswith("]") else "{0}"
        for name, found in headers.structures.items()
    }
    structures = [
        f"STRUCTURE({name}, {headers.inits.get(name, zero)}, {int(name in takers)})" for name, zero in zeros.items()
    ]
    functions = [function_line(headers, function) for function in headers.functions.values()]
    return FUNCTIONS_H.format(
        callbacks="\n".join(callbacks), structures="\n".join(structures), functions="\n".join(functions)
    )


def plain_steps(headers: Headers, called: Iterable[str]) -> str:
    """Returns a line for each function that is not in `called`. A fuzz program calls these functions with the arguments
    of plain.h."""
    known = set(called)
    return "".join(
        function_line(headers, function) + "\n" for name, function in headers.functions.items() if name not in known
    )


def counted(headers: Headers, folder: Path) -> None:
    """Writes two headers for Tests/cpp/counted.hpp, which includes the first header, then usher.hpp, then the second.
    Between the two, the name of each C function is a macro, so usher.hpp calls a function that counts the call."""
    on = (f"#define {name} ::counted<::{name}>::call\n" for name in headers.functions)
    (folder / "counted_on.h").write_text("".join(on))
    (folder / "counted_off.h").write_text("".join(f"#undef {name}\n" for name in headers.functions))
