"""Tests that the declarations of the bindings agree with the headers: structures, numbers, prototypes.

scripts/headers.py reads the headers, and scripts/generate writes the declarations. In these tests a C compiler checks
the prototypes and names of fields that headers.py has read, and the layouts and numbers in the declarations.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from usher._c import abi, enums

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = ROOT / "include"
if not (INCLUDE / "usher").is_dir():
    pytest.skip("the headers are missing: not in the source tree", allow_module_level=True)
sys.path.insert(0, str(ROOT / "scripts"))
from headers import Headers  # noqa: E402

HEADERS = Headers(INCLUDE)
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

ENUMS: dict[str, type[Enum]] = {
    "USHER_E_": enums.Status,
    "USHER_ORIGIN_": enums.Origin,
    "USHER_OPERATION_": enums.Operation,
    "USHER_TLS_FAULT_": enums.TLSFault,
    "USHER_EVENT_": enums.EventType,
    "USHER_NOTICE_": enums.NoticeType,
    "USHER_SESSION_": enums.SessionState,
    "USHER_CLOSE_": enums.CloseMode,
    "USHER_CLOCK_": enums.Clock,
    "USHER_CALLBACKS_": enums.Callbacks,
    "USHER_GUARDIAN_": enums.Guardian,
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
    "USHER_TOKEN_": enums.TokenKind,
    "USHER_PART_": enums.Part,
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
    "char": ctypes.c_char,
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


def ctype(text: str) -> Any:
    """Returns the ctypes type for a C type."""
    if text in SCALARS:
        return SCALARS[text]
    if text in abi.CALLBACKS:
        return abi.CALLBACKS[text]
    if array := re.fullmatch(r"(\w+)\[(\d+)\]", text):
        return ctype(array[1]) * int(array[2])
    bare = text.removeprefix("const ").strip()
    assert bare.endswith("*"), f"no ctypes type for {text!r}"
    inner = bare[:-1].strip()
    if inner in abi.STRUCTURES:
        return ctypes.POINTER(abi.STRUCTURES[inner])
    return ctypes.POINTER(ctype(inner))


def compile_and_run(tmp_path: Path, lines: list[str]) -> dict[str, str]:
    """Compiles and runs C statements that print lines "name value". Returns the values by name."""
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


def compile_only(tmp_path: Path, lines: list[str]) -> None:
    source = tmp_path / "check.c"
    source.write_text("#include <usher/usher.h>\n" + "\n".join(lines) + "\n")
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
    subprocess.run([COMPILER or "cc", *strict, "-I", str(INCLUDE), str(source)], check=True)


def fields_of(name: str) -> list[str]:
    return [field.name for field in HEADERS.structures[name].fields]


def test_headers_asTheReaderReadsThem_areTheCompilers(tmp_path: Path) -> None:
    lines = []
    for name, function in HEADERS.functions.items():
        lines.append(f"{function.result} (*const check_{name})({', '.join(function.types) or 'void'}) = {name};")
    for name, callback in HEADERS.function_types.items():
        lines.append(f"extern {callback.result} host_{name}({', '.join(callback.types)});")
        lines.append(f"const {name} check_{name} = host_{name};")
    for name, structure in HEADERS.structures.items():
        lines.append(f"extern {name} example_{name};")
        for field in structure.fields:
            item, bracket, count = field.type.partition("[")
            pointer = f"*const {name}_{field.name}"
            declared = f"{item} ({pointer})[{count}" if bracket else f"{item} const {pointer}"
            lines.append(f"{declared} = &example_{name}.{field.name};")
    compile_only(tmp_path, lines)


def test_structures_ofTheHeader_areAllBound() -> None:
    assert set(HEADERS.structures) == set(abi.STRUCTURES)
    for name, structure in abi.STRUCTURES.items():
        assert [field[0] for field in structure._fields_] == fields_of(name), name


def test_layouts_ofEveryStructure_areTheCompilers(tmp_path: Path) -> None:
    lines = []
    for name in HEADERS.structures:
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in fields_of(name):
            lines.append(
                f'printf("{name}.{field} %zu+%zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));'
            )
    wanted = compile_and_run(tmp_path, lines)
    ours = {}
    for name, structure in abi.STRUCTURES.items():
        ours[name] = str(ctypes.sizeof(structure))
        for field in fields_of(name):
            descriptor = getattr(structure, field)
            ours[f"{name}.{field}"] = f"{descriptor.offset}+{descriptor.size}"
    assert ours == wanted


def test_fieldTypes_ofEveryStructure_areTheHeaders() -> None:
    for name, structure in HEADERS.structures.items():
        bound = dict(field[:2] for field in abi.STRUCTURES[name]._fields_)
        for field in structure.fields:
            wanted = abi.STRUCTURES.get(field.type) or ctype(field.type)
            assert bound[field.name] is wanted, f"{name}.{field.name} is {field.type}"


def test_numbers_ofTheHeader_areAllBound(tmp_path: Path) -> None:
    lines = []
    for name, constant in HEADERS.constants.items():
        kind = '%s\\n", ' if constant.value.startswith('"') else '%lld\\n", (long long)'
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
    assert set(HEADERS.functions) == set(abi.PROTOTYPES)


@pytest.mark.parametrize("name", sorted(abi.PROTOTYPES))
def test_prototype_inCtypes_isTheHeaders(name: str) -> None:
    function = HEADERS.functions[name]
    assert abi.PROTOTYPES[name] == (ctype(function.result), tuple(map(ctype, function.types)))


def test_prototypeComments_areTheHeadersLines() -> None:
    lines = Path(abi.__file__).read_text().splitlines()
    comments = "".join(line.replace("#", "") for line in lines if line.lstrip().startswith("# "))
    for function in HEADERS.functions.values():
        parameters = ", ".join(parameter.text for parameter in function.parameters) or "void"
        declaration = f"{function.result} {function.name}({parameters});"
        assert "".join(declaration.split()) in "".join(comments.split()), function.name


def test_table_ofTheHeader_hasEveryFunctionAsItIsDeclared() -> None:
    declared = {name: (function.result, function.types) for name, function in HEADERS.functions.items()}
    del declared["usher_get_api"]
    assert HEADERS.table == declared


def test_getApi_ofThisMajor_isTheTableOfTheExportedFunctions(tmp_path: Path) -> None:
    from usher._c.ffi import lib

    names = list(HEADERS.table)
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
    assert set(HEADERS.callbacks) == set(abi.CALLBACKS)
    for name, callback in HEADERS.callbacks.items():
        function = abi.CALLBACKS[name]
        assert function._restype_ is (None if callback.result == "void" else ctype(callback.result)), name
        assert function._argtypes_ == tuple(map(ctype, callback.types)), name


def test_everyStatus_hasAClass() -> None:
    from usher._errors import BY_STATUS

    assert set(BY_STATUS) == set(enums.Status) - {enums.Status.OK}
    assert len(set(BY_STATUS.values())) == len(BY_STATUS)


def test_initMacros_fillEveryField(tmp_path: Path) -> None:
    assert len(HEADERS.inits) >= 5
    compile_only(tmp_path, [f"const {name} check_{name} = {macro};" for name, macro in HEADERS.inits.items()])
