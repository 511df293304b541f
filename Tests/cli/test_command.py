"""Tests the command usher itself: its sub-commands, versions, exit codes, completion, and the program in C."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from usher import Origin
from usher.cli import native, registry
from usher.cli.commands.explain import ORIGINS
from usher.cli.exits import Exit
from usher.cli.main import main
from usher.cli.registry import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "usher.cli"]


def usher(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "USHER_PROGRAM": "", **environment},
    )


def test_usher_withoutACommand_printsItsHelpAndExits2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == "" and all(f"    {command.name}" in said.err for command in COMMANDS)
    assert all(f"  {int(code):<4} {code.meaning}" in said.err for code in Exit)


def test_usher_unknownCommand_isNamedWithTheOneThatIsMeant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prob", "https://ssm.example"]) == Exit.USAGE
    assert capsys.readouterr().err == "usher: there is no command prob: did you mean 'probe'?\n"
    assert main(["zzz"]) == Exit.USAGE
    assert capsys.readouterr().err == "usher: there is no command zzz; `usher --help` lists the commands\n"


def test_usher_version_namesPackageLibraryAndProgram(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == Exit.OK
    package, library, program = capsys.readouterr().out.splitlines()
    assert package.startswith("usher ") and library.startswith("library ")
    assert package.split()[1] == library.split()[1]
    assert program.endswith("for run, gateway, trace")


def test_usher_withoutTheLibrary_saysSoInOneLine() -> None:
    ended = usher("explain", "1007", USHER_LIBRARY="/nonexistent/libusher.so")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (
        Exit.MISSING,
        "",
        1,
    )
    assert ended.stderr.startswith("usher explain: cannot load the usher library from /nonexistent/libusher.so")
    version = usher("--version", USHER_LIBRARY="/nonexistent/libusher.so")
    assert version.returncode == Exit.OK and "no library: cannot load" in version.stdout
    listed = usher("check", "--list", USHER_LIBRARY="/nonexistent/libusher.so")
    assert listed.returncode == Exit.OK and "limit-together" in listed.stdout, "check needs no library"


def test_usher_everyCommand_hasHelpWithExamplesAndExitCodes(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        if command.native:
            continue
        with pytest.raises(SystemExit) as ended:
            main([command.name, "--help"])
        said = capsys.readouterr().out
        assert ended.value.code == 0
        assert "examples:" in said and "exit codes:" in said and "--json" in said and "--color" in said, command.name
        assert max(map(len, said.splitlines())) <= 120, command.name


def test_usher_output_whosReaderHasEnded_isNoError() -> None:
    with subprocess.Popen([*PROGRAM, "completion", "bash"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_usher_interruptedDuringItsImports_hasNoTraceback() -> None:
    """Ctrl-C comes while Python imports the command. The signal ends the process, and the process prints nothing."""
    press = (
        "import os, signal, sys\n"
        "class Press:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'usher.cli.main':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "from usher.cli.__main__ import program\n"
        "sys.meta_path.insert(0, Press())\n"
        "program()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", press, "explain", "1007"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_explain_knownCode_printsWordsAndSource(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "1007"]) == Exit.OK
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "1007 from ssm" and "Too many devices" in said[1] and said[3] == "Source: SSM error codes"
    assert main(["explain", "1007", "license", "--json"]) == Exit.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["code"], found["origin"]) == (1007, "license") and "Too many devices" not in found["summary"]


def test_explain_everyOriginOfItsHelp_isKnown(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(ORIGINS) == sorted(origin.name.lower() for origin in Origin)
    for origin in ORIGINS:
        assert main(["explain", "4321", origin]) == Exit.OK
        assert capsys.readouterr().out.startswith(f"4321 from {origin}\n")
    assert main(["explain", "-2018", "license"]) == Exit.OK
    assert "how licence tokens are made" in capsys.readouterr().out


def test_explain_statusOrUnknownCode(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "USHER_E_TIMEOUT"]) == Exit.OK
    assert capsys.readouterr().out.startswith("USHER_E_TIMEOUT from local\nThe server cannot be reached.")
    assert main(["explain", "987654", "ssm"]) == Exit.OK
    assert "does not know this code" in capsys.readouterr().out
    assert main(["explain", "TIMEOUTS"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert said.startswith("usher explain: TIMEOUTS: ") and said.count("\n") == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_hasEveryCommandAndOption(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == Exit.OK
    script = capsys.readouterr().out
    assert all(command.name in script for command in COMMANDS) and "rotation" in script
    program = shutil.which(shell)
    if program is not None:
        checked = subprocess.run([program, "-n"], input=script, capture_output=True, text=True, timeout=30)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_command_withoutAPackageThatItNeeds_namesTheExtra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str, package: str | None = None) -> None:
        raise ModuleNotFoundError("no aiohttp", name="aiohttp")

    monkeypatch.setattr(registry, "import_module", fail)
    assert main(["headend"]) == Exit.MISSING
    said = capsys.readouterr().err
    assert said == "usher headend: the package aiohttp is not installed: pip install 'libusher[headend]'\n"


def made_program(folder: Path, content: bytes) -> Path:
    folder.mkdir()
    path = folder / "usher"
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def test_nativeCommand_withoutTheProgram_saysWhatToInstall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = made_program(tmp_path / "venv", b"#!/usr/bin/env python3\n")  # a script, not the C program
    monkeypatch.setattr(native, "candidates", lambda: iter([script, tmp_path / "none" / "usher"]))
    monkeypatch.delenv(native.OVERRIDE, raising=False)
    assert native.find() is None
    assert main(["run", "--help"]) == Exit.MISSING


def test_nativeCommand_findsTheProgramAndPassesItsArguments(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "usher").symlink_to(shutil.which("echo") or "/bin/echo")  # stands for the C program
    path = f"{Path(sys.executable).parent}:{tmp_path / 'bin'}"
    ended = usher("trace", "view", "--json", PATH=path)
    assert (ended.returncode, ended.stdout) == (0, "trace view --json\n")
    named = usher("gateway", USHER_PROGRAM="/nonexistent/usher")
    assert named.returncode == Exit.MISSING
    assert named.stderr == "usher gateway: `usher gateway`: cannot run /nonexistent/usher: No such file or directory\n"


def test_headend_byUsher_isTheSameProgram() -> None:
    with subprocess.Popen(
        [*PROGRAM, "headend", "--json", "--limit", "1"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["limit"] == 1 and ready["pid"] == process.pid
        process.terminate()
        assert json.loads(process.stdout.readline())["violations"] == []
    assert process.returncode == 0


@pytest.mark.parametrize("port", ["99999", "-1", "http"])
def test_headend_portOutOfRange_isNamed(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["headend", f"--port={port}"])
    assert ended.value.code == 2
    assert f"{port} is no port: give a number from 0 to 65535" in capsys.readouterr().err


def test_headend_withoutItsPackages_saysWhatToInstall(tmp_path: Path) -> None:
    (tmp_path / "trustme.py").write_text("raise ModuleNotFoundError('no trustme', name='trustme')\n")
    for program in (
        [*PROGRAM, "headend"],
        [sys.executable, "-c", "from usher.cli.headend_program import main; main()"],
    ):
        ended = subprocess.run(
            program,
            capture_output=True,
            text=True,
            timeout=30,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        assert "the package trustme is not installed: pip install 'libusher[headend]'" in ended.stderr
        assert ended.stderr.count("\n") == 1 and ended.stdout == ""
    for imports in (["-m", "usher.testing.headend"], ["-c", "from usher.testing.headend import HeadEnd"]):
        ended = subprocess.run(
            [sys.executable, *imports],
            capture_output=True,
            text=True,
            timeout=30,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        words = "the head-end needs the package trustme, which is not installed: pip install 'libusher[headend]'"
        assert ended.stderr.endswith(f"ModuleNotFoundError: {words}\n")


def test_programInC_listsTheCommandsOfThePackage() -> None:
    source = (ROOT / "hosts" / "usher" / "main.c").read_text(encoding="utf-8")
    table = source[source.index("} python_commands[] = {") :].partition("};")[0]
    listed = re.findall(r'\{"([^"]*)", "([^"]*)"\}', table)
    assert listed == [(command.name, command.summary) for command in COMMANDS if not command.native]


def test_manualPages_areUpToDate() -> None:
    ended = subprocess.run([sys.executable, ROOT / "scripts" / "man-page", "--check"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    if shutil.which("groff"):
        pages = sorted((ROOT / "docs" / "man").iterdir())
        shown = subprocess.run(["groff", "-man", "-ww", "-z", *pages], capture_output=True, text=True)
        assert (shown.returncode, shown.stderr) == (0, "")
