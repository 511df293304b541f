"""The bindings say what the headers say: structures, numbers and prototypes, by compiling and reading include/usher/*.h."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from usher._c import abi, enums

INCLUDE = Path(__file__).resolve().parents[3] / "include"
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = [
    pytest.mark.skipif(not (INCLUDE / "usher").is_dir(), reason="not in the source tree: no headers"),
    pytest.mark.skipif(COMPILER is None, reason="no C compiler"),
]

ENUMS: dict[str, type[Enum]] = {
    "USHER_E_": enums.Status,
    "USHER_ORIGIN_": enums.Origin,
    "USHER_OPERATION_": enums.Operation,
    "USHER_EVENT_": enums.EventType,
    "USHER_SESSION_": enums.SessionState,
    "USHER_CLOSE_": enums.CloseMode,
    "USHER_CLOCK_": enums.Clock,
    "USHER_CALLBACKS_": enums.Callbacks,
    "USHER_LOG_": enums.LogLevel,
    "USHER_LICENSE_": enums.LicenseType,
    "USHER_RENEW_": enums.RenewType,
    "USHER_APPEND_": enums.AppendVersion,
    "USHER_HEARTBEAT_MISSING_": enums.HeartbeatMissing,
    "USHER_HEARTBEAT_START_": enums.HeartbeatStart,
    "USHER_KEEP_ALIVE_": enums.KeepAlive,
    "USHER_RESETUP_": enums.Resetup,
    "USHER_WIRE_": enums.WireFormat,
    "USHER_SUSPEND_": enums.Suspend,
    "USHER_HOOK_": enums.Hook,
    "USHER_ROUTE_": enums.Route,
    "USHER_CONTENT_ID_": enums.ContentIDRule,
    "USHER_FPS_REQUEST_": enums.FPSRequest,
    "USHER_URLENCODE_": enums.URLEncode,
    "USHER_FPS_RESPONSE_": enums.FPSResponse,
    "USHER_KEY_SYSTEM_": enums.KeySystem,
}

SCALARS = {
    "double": ctypes.c_double,
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "usher_completion": ctypes.c_uint64,
    "const char *": ctypes.c_char_p,
    "const uint8_t *": ctypes.POINTER(ctypes.c_uint8),
    "uint8_t": ctypes.c_uint8,
    "void *": ctypes.c_void_p,
    "const usher_api *": ctypes.c_void_p,
    "usher_context *": abi.ContextHandle,
    "usher_delegate *": abi.DelegateHandle,
    "usher_player *": abi.PlayerHandle,
    "usher_playback *": abi.PlaybackHandle,
    "usher_response *": abi.ResponseHandle,
    "usher_loader *": abi.LoaderHandle,
}


def headers() -> str:
    """All headers, comments and line breaks out."""
    text = "\n".join(path.read_text() for path in sorted((INCLUDE / "usher").glob("*.h")))
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def defines() -> dict[str, str]:
    """#defines that are values (not guards, macros with braces or attributes)."""
    found = re.findall(r"^#define (USHER_[A-Z0-9_]+)[ \t]+(\S.*?)\s*$", headers(), flags=re.M)
    return {
        name: value
        for name, value in found
        if not name.endswith("_INIT") and "__attribute__" not in value and value != "\\" and name != "USHER_API"
    }


def bodies() -> dict[str, str]:
    """struct name -> what stands between its braces; the table of functions is apart, see table()."""
    found = dict(re.findall(r"typedef struct (usher_\w+) \{(.*?)\} \1;", headers(), flags=re.S))
    del found["usher_api"]
    return found


def structures() -> dict[str, list[str]]:
    """struct name -> field names, in order."""
    return {
        name: [re.split(r"[\s*]+", field.strip())[-1] for field in body.split(";") if field.strip()]
        for name, body in bodies().items()
    }


def table() -> dict[str, tuple[str, list[str]]]:
    """usher_api: function name -> (result, argument types), in order. Anything but a pointer to a function after `struct_size` fails here."""
    (body,) = re.findall(r"typedef struct usher_api \{(.*?)\} usher_api;", headers(), flags=re.S)
    first, *fields = [field.strip() for field in body.split(";") if field.strip()]
    assert first == "size_t struct_size"
    found = {}
    for field in fields:
        declared = re.fullmatch(r"([\w\s]+?[\s*]+)\(\*(\w+)\)\(([^)]*)\)", field)
        assert declared, f"usher_api: no pointer to a function: {field}"
        result, name, arguments = declared.groups()
        found[f"usher_{name}"] = (result.strip(), argument_types(arguments))
    return found


def argument_types(arguments: str) -> list[str]:
    return (
        []
        if arguments.strip() == "void"
        else [re.sub(r"\w+$", "", argument.strip()).strip() for argument in arguments.split(",")]
    )


def prototypes() -> dict[str, tuple[str, list[str]]]:
    """function name -> (result, argument types), as C writes them."""
    found = {}
    for result, name, arguments in re.findall(r"USHER_API ([\w\s]+?[\s*]+)(usher_\w+)\(([^)]*)\);", headers()):
        found[name] = (result.strip(), argument_types(arguments))
    return found


def callbacks() -> dict[str, list[str]]:
    found = {}
    for name, arguments in re.findall(r"typedef void \(\*(usher_\w+_fn)\)\(([^)]*)\);", headers()):
        found[name] = argument_types(arguments)
    return found


def ctype(text: str) -> Any:
    """The ctypes type for a C type."""
    if text in SCALARS:
        return SCALARS[text]
    if text in abi.CALLBACKS:
        return abi.CALLBACKS[text]
    bare = text.removeprefix("const ").strip()
    assert bare.endswith("*"), f"no ctypes type for {text!r}"
    inner = bare[:-1].strip()
    if inner in abi.STRUCTURES:
        return ctypes.POINTER(abi.STRUCTURES[inner])
    return ctypes.POINTER(ctype(inner))


def compile_and_run(tmp_path: Path, lines: list[str]) -> dict[str, str]:
    """Prints "name value" lines from C; returns them."""
    source = tmp_path / "probe.c"
    source.write_text(
        "#include <stdio.h>\n#include <stddef.h>\n#include <usher/usher.h>\nint main(void) {\n"
        + "\n".join(lines)
        + "\nreturn 0;\n}\n"
    )
    program = tmp_path / "probe"
    subprocess.run([COMPILER or "cc", "-std=c11", "-I", str(INCLUDE), str(source), "-o", str(program)], check=True)
    output = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    return dict(line.split(" ", 1) for line in output.splitlines())


def test_structures_ofTheHeader_areAllBound() -> None:
    assert set(structures()) == set(abi.STRUCTURES)
    assert {name: [field[0] for field in s._fields_] for name, s in abi.STRUCTURES.items()} == structures()


def test_layouts_ofEveryStructure_areTheCompilers(tmp_path: Path) -> None:
    lines = []
    for name, fields in structures().items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in fields:
            lines.append(
                f'printf("{name}.{field} %zu+%zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));'
            )
    wanted = compile_and_run(tmp_path, lines)
    ours = {}
    for name, structure in abi.STRUCTURES.items():
        ours[name] = str(ctypes.sizeof(structure))
        for field in structures()[name]:
            descriptor = getattr(structure, field)
            ours[f"{name}.{field}"] = f"{descriptor.offset}+{descriptor.size}"
    assert ours == wanted


def test_fieldTypes_ofEveryStructure_areTheHeaders() -> None:
    for name, body in bodies().items():
        for declaration in body.split(";"):
            if not declaration.strip():
                continue
            kind, field = re.fullmatch(r"\s*(.*?[\s*])(\w+)\s*", declaration, flags=re.S).groups()  # type: ignore[union-attr]
            wanted = abi.STRUCTURES.get(kind.strip()) or abi.CALLBACKS.get(kind.strip()) or ctype(kind.strip())
            assert dict(f[:2] for f in abi.STRUCTURES[name]._fields_)[field] is wanted, f"{name}.{field} is {kind}"


def test_numbers_ofTheHeader_areAllBound(tmp_path: Path) -> None:
    lines = []
    for name, value in defines().items():
        kind = '%s\\n", ' if value.startswith('"') else '%lld\\n", (long long)'
        lines.append(f'printf("{name} {kind}{name});')
    c = compile_and_run(tmp_path, lines)
    ours = {
        f"{prefix}{member.name}": str(member.value)
        for prefix, enum in ENUMS.items()
        for member in enum
        if prefix + member.name != "USHER_E_OK"
    }
    ours["USHER_OK"] = str(enums.Status.OK.value)
    ours["USHER_OFF"] = str(abi.OFF)
    ours |= dict(
        zip(("USHER_VERSION_MAJOR", "USHER_VERSION_MINOR", "USHER_VERSION_PATCH"), map(str, abi.VERSION), strict=True)
    )
    assert ours == c


def test_prototypes_ofTheHeader_areAllBound() -> None:
    assert set(prototypes()) == set(abi.PROTOTYPES)


@pytest.mark.parametrize("name", sorted(abi.PROTOTYPES))
def test_prototype_inCtypes_isTheHeaders(name: str) -> None:
    result, arguments = prototypes()[name]
    assert abi.PROTOTYPES[name] == (ctype(result), tuple(ctype(argument) for argument in arguments))


def test_prototypeComments_areTheHeadersLines() -> None:
    source = Path(abi.__file__).read_text()
    for line in re.findall(r"^USHER_API (.*;)$", headers(), flags=re.M):
        assert f"# {line}" in source, line


def test_table_ofTheHeader_hasEveryFunctionAsItIsDeclared() -> None:
    assert table() == {name: prototype for name, prototype in prototypes().items() if name != "usher_get_api"}


def test_getApi_ofThisMajor_isTheTableOfTheExportedFunctions(tmp_path: Path) -> None:
    from usher._c.ffi import lib

    names = list(table())
    lines = ['printf("size %zu\\n", sizeof(usher_api));']
    lines += [f'printf("{name} %zu\\n", offsetof(usher_api, {name.removeprefix("usher_")}));' for name in names]
    c = {name: int(value) for name, value in compile_and_run(tmp_path, lines).items()}
    address = lib.usher_get_api(abi.VERSION[0])
    assert ctypes.c_size_t.from_address(address).value == c["size"]
    found = {name: ctypes.c_void_p.from_address(address + c[name]).value for name in names}
    assert found == {name: ctypes.cast(getattr(lib, name), ctypes.c_void_p).value for name in names}
    assert lib.usher_get_api(abi.VERSION[0]) == address, "static storage"


@pytest.mark.parametrize("major", [99, 1, 2**32 - 1])
def test_getApi_ofAnotherMajor_isNull(major: int) -> None:
    from usher._c.ffi import lib

    assert lib.usher_get_api(major) is None


def test_callbackTypes_ofTheHeader_areAllBound() -> None:
    assert set(callbacks()) == set(abi.CALLBACKS)
    for name, arguments in callbacks().items():
        function = abi.CALLBACKS[name]
        assert function._restype_ is None
        assert function._argtypes_ == tuple(ctype(argument) for argument in arguments), name


def test_everyStatus_hasAClass() -> None:
    from usher._errors import BY_STATUS

    assert set(BY_STATUS) == set(enums.Status) - {enums.Status.OK}
    assert len(set(BY_STATUS.values())) == len(BY_STATUS)


def test_initMacros_fillEveryField(tmp_path: Path) -> None:
    names = re.findall(r"^#define (USHER_\w+)_INIT\b", headers(), flags=re.M)
    source = tmp_path / "init.c"
    source.write_text(
        "#include <usher/usher.h>\n"
        + "\n".join(f"const {name.lower()} check_{name} = {name}_INIT;" for name in names)
        + "\n"
    )
    assert len(names) >= 5
    subprocess.run(
        [COMPILER or "cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", str(INCLUDE), str(source)],
        check=True,
    )
