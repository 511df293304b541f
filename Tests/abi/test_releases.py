"""Hosts that were built with the headers of a recorded release run with this library; scripts/abi finds each change
that would break them."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from usher.testing.headend import HeadEnd

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "Tests" / "abi"
RELEASES = sorted((HERE / "releases").glob("*/include"))
KEY_ID = bytes(range(16))
STEP_S = 60
PERIOD_S = 10


@pytest.fixture
def library() -> Path:
    return Path(os.environ["USHER_LIBRARY"]).resolve()


def build_host(program: Path, include: Path, library: Path, *flags: str) -> None:
    """Builds old_host.c with the headers in `include`."""
    command = ["cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-pedantic", "-Werror", *flags]
    command += ["-I", str(include), str(HERE / "old_host.c"), "-o", str(program), "-ldl"]
    if "-DBY_TABLE" not in flags:
        command += [str(library), f"-Wl,-rpath,{library.parent}"]
    subprocess.run(command, check=True, timeout=STEP_S)


def play(host: Path, *library: Path) -> None:
    """Plays an item with the host; the head-end's journal must have one whole session."""
    with HeadEnd(period_s=PERIOD_S, keys={KEY_ID: bytes(16)}) as head_end:
        urls = [head_end.license_url("clearkey"), head_end.ssm_url]
        key_id = base64.urlsafe_b64encode(KEY_ID).rstrip(b"=").decode()
        command = [str(host), *urls, head_end.content_token("alice"), key_id, *map(str, library)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_S, check=False)
        routes = [entry.route for entry in head_end.journal.entries()]
    assert re.findall(r"^not ok.*", done.stdout, re.M) == [] and done.returncode == 0, done.stdout + done.stderr
    assert "ok - the program ends by itself" in done.stdout
    assert routes == ["setup", "license", "heartbeat", "heartbeat", "heartbeat", "teardown"]


@pytest.mark.parametrize("way", ["linked", "table"])
@pytest.mark.parametrize("include", RELEASES, ids=[folder.parent.name for folder in RELEASES])
def test_host_builtWithTheHeadersOfAnOlderRelease_playsWithThisLibrary(
    include: Path, way: str, library: Path, tmp_path: Path
) -> None:
    build_host(tmp_path / "host", include, library, *(["-DBY_TABLE"] if way == "table" else []))
    play(tmp_path / "host", *([library] if way == "table" else []))


# ---- the gate itself -------------------------------------------------------------------------------------------------


def gate(include: Path, releases: Path = HERE / "releases") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "abi"), "--include", str(include), "--releases", str(releases)]
    return subprocess.run(command, capture_output=True, text=True, timeout=STEP_S, check=False)


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Path]:
    """Returns a function that copies the headers and replaces a text in one of them."""

    def copy(header: str, before: str, after: str) -> Path:
        include = tmp_path / "include"
        shutil.copytree(ROOT / "include", include)
        file = include / "usher" / header
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{header} has {text.count(before)} x {before!r}"
        file.write_text(text.replace(before, after), encoding="utf-8")
        return include

    return copy


BROKEN: dict[str, tuple[str, str, str, str]] = {
    "a function is removed": (
        "base.h",
        "USHER_API const char *usher_version(void);",
        "",
        "functions and types",
    ),
    "a parameter has another type": (
        "context.h",
        "USHER_API int32_t usher_context_begin_close(usher_context *context, uint32_t timeout_ms);",
        "USHER_API int32_t usher_context_begin_close(usher_context *context, uint64_t timeout_ms);",
        "functions and types",
    ),
    "a callback has another type": (
        "event.h",
        "typedef void (*usher_event_fn)(const usher_event *event, void *user_data);",
        "typedef void (*usher_event_fn)(const usher_event *event, void *user_data, int32_t more);",
        "functions and types",
    ),
    "a field is inserted": (
        "context.h",
        "  int32_t keep_cookies;",
        "  int32_t keep_cookies, more;\n  int32_t even_more;",
        "functions and types",
    ),
    "a field is removed": ("context.h", "  void *refusal_user_data;\n", "", "functions and types"),
    "a field has another name": ("context.h", "  int32_t keep_cookies;", "  int32_t cookies;", "fields and members"),
    "a field has another type": (
        "context.h",
        "  int32_t keep_cookies;",
        "  uint32_t keep_cookies;",
        "functions and types",
    ),
    "a structure without a size grows": (
        "error.h",
        "} usher_error;",
        "  uint64_t more;\n} usher_error;",
        "functions and types",
    ),
    "a new field is in old padding": (
        "loader.h",
        "} usher_entitlement;",
        "  int32_t more;\n} usher_entitlement;",
        "no new field lies in the padding",
    ),
    "members of the table change places": (
        "api.h",
        "  const char *(*version)(void);\n  const char *(*status_name)(int32_t status);",
        "  const char *(*status_name)(int32_t status);\n  const char *(*version)(void);",
        "fields and members",
    ),
    "a constant has another value": (
        "error.h",
        "#define USHER_E_LIMIT (-24)",
        "#define USHER_E_LIMIT (-99)",
        "constants",
    ),
    "a constant is removed": ("error.h", "#define USHER_E_LIMIT (-24)", "", "constants"),
    "a structure that may grow is a field": (
        "testing.h",
        "} usher_pending;",
        "  usher_metrics metrics;\n} usher_pending;",
        "no structure that may grow",
    ),
}
ALLOWED: dict[str, tuple[str, str, str]] = {
    "a structure with a size grows at its end": (
        "context.h",
        "} usher_context_options;",
        "  void *more;\n} usher_context_options;",
    ),
    "an event grows at its end": ("event.h", "} usher_event;", "  uint64_t more;\n} usher_event;"),
    "a function is new": (
        "testing.h",
        "USHER_API int32_t usher_context_pending(usher_context *context, usher_pending *out);",
        "USHER_API int32_t usher_context_pending(usher_context *context, usher_pending *out);\n"
        "/** New. */\nUSHER_API int32_t usher_new(usher_context *context);",
    ),
    "a constant is new": (
        "error.h",
        "#define USHER_E_LIMIT (-24)",
        "#define USHER_E_LIMIT (-24)\n#define USHER_E_NEW (-99)",
    ),
}


@pytest.mark.parametrize("change", BROKEN)
def test_gate_changeThatBreaksHosts_isNotOk(change: str, edited: Callable[..., Path]) -> None:
    header, before, after, rule = BROKEN[change]
    done = gate(edited(header, before, after))
    broken = re.findall(r"^not ok - (.*)$", done.stdout, re.M)
    assert done.returncode == 1 and any(rule in line for line in broken), done.stdout + done.stderr


@pytest.mark.parametrize("change", ALLOWED)
def test_gate_changeThatTheRulesAllow_isOk(change: str, edited: Callable[..., Path]) -> None:
    done = gate(edited(*ALLOWED[change]))
    assert done.returncode == 0 and "not ok" not in done.stdout, done.stdout + done.stderr


def test_gate_headersOfThisCheckout_keepTheRules() -> None:
    done = gate(ROOT / "include")
    assert done.returncode == 0 and done.stdout.count("ok - ") >= 1 + 4 * len(RELEASES), done.stdout + done.stderr


def test_record_release_isWhatTheNextCheckComparesWith(tmp_path: Path, edited: Callable[..., Path]) -> None:
    include = edited("context.h", "} usher_context_options;", "  void *more;\n} usher_context_options;")
    command = [sys.executable, str(ROOT / "scripts" / "abi"), "record", "--include", str(include)]
    subprocess.run([*command, "--releases", str(tmp_path)], check=True, capture_output=True, timeout=STEP_S)
    assert gate(include, tmp_path).returncode == 0
    done = gate(ROOT / "include", tmp_path)  # these headers do not have the new field
    assert done.returncode == 1 and "usher_context_options" in done.stdout
