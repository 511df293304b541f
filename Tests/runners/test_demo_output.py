"""The output of `make demo` fits 100 columns, and shows progress while the demo waits; KEEP=1 keeps files and page."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import urllib.request
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import parts  # noqa: E402
from demo_output import WIDTH, Output, columns, folded  # noqa: E402

KEEPS = """
import argparse, sys
from pathlib import Path
sys.path.insert(0, {scripts!r})
import demo, demo_stage
stage = demo_stage.Stage(argparse.Namespace(player="", library=None), Path(sys.argv[1]))
head_end = demo_stage.HeadEnd(sys.executable, stage.folder, stage.environment, "0" * 32, "1" * 32)
stage.processes.append(head_end.process)
print(head_end.page_url, flush=True)
try:
    demo.keep_open(stage, head_end)
finally:
    stage.end()
print("ended", head_end.process.running)
"""


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_folded_shortLine_isUnchanged() -> None:
    assert list(folded("  a line")) == ["  a line"]


@pytest.mark.parametrize("width", [20, 33, WIDTH])
def test_folded_longLine_keepsWordsAndIndentWithinTheWidth(width: int) -> None:
    line = "    " + " ".join(f"word{number}" for number in range(60))
    parts = list(folded(line, width))
    assert " ".join(part.strip() for part in parts) == line.strip()
    assert all(columns(part) <= width and part.startswith("    word") for part in parts)
    assert len(parts) > 1


def test_folded_wordWiderThanTheWidth_staysWhole() -> None:
    assert list(folded("  a " + "x" * 30 + " b", 20)) == ["  a", "  " + "x" * 30, "  b"]


def test_folded_colour_continuesOnTheNextLine() -> None:
    assert list(folded("\033[31mone two\033[0m", 5)) == ["\033[31mone\033[0m", "\033[31mtwo\033[0m"]


def test_say_longText_fitsTheWidth() -> None:
    stream = StringIO()
    Output(stream).say("word " * 200)
    Output(stream).quote("word " * 200)
    assert max(map(columns, stream.getvalue().splitlines())) <= WIDTH


def test_progress_whileOutputIsSilent_printsALineBeforeEachSecondEnds() -> None:
    clock, stream = Clock(), StringIO()
    output = Output(stream, now=clock)
    output.say("begins")
    silent_s: list[float] = []
    printed_s = clock.now_s
    for _ in range(100):
        clock.now_s += 0.05
        before = stream.tell()
        output.progress(lambda: "waits")
        if stream.tell() != before:
            silent_s.append(clock.now_s - printed_s)
            printed_s = clock.now_s
    assert stream.getvalue().splitlines() == ["begins"] + ["   … waits"] * len(silent_s)
    assert len(silent_s) >= 5 and max(silent_s) <= 1


def test_progress_rightAfterOutput_printsNothing() -> None:
    clock, stream = Clock(), StringIO()
    output = Output(stream, now=clock)
    output.say("begins")
    output.progress(lambda: "waits")
    assert stream.getvalue() == "begins\n"


def test_progress_onATerminal_rewritesOneLineAndRemovesItBeforeOutput() -> None:
    ours, theirs = pty.openpty()
    clock = Clock()
    with open(theirs, "w", encoding="utf-8") as terminal:
        output = Output(terminal, now=clock)
        for text in ("first", "second"):
            clock.now_s += 1
            output.progress(lambda text=text: text)
        output.say("done")
        told = ""
        while not told.endswith("done\r\n"):
            told += os.read(ours, 4096).decode()
    os.close(ours)
    assert told.count("\n") == 1 and told.index("first") < told.index("second")
    assert told.endswith("\r\033[Kdone\r\n")


@pytest.mark.parametrize(
    ("output", "failures"),
    [
        ("{page}\nAct 1. plays\nWhat was seen\n   ✓ one\n   ✓ two\n", []),
        ("{page}\nAct 1. plays\nWhat was seen\n   ✓ one\n   ✗ two  [0]\n", ["two  [0]"]),
        ("{page}\nAct 1. {wide}\nWhat was seen\n   ✓ one\n", ["wider than 100 columns: Act 1. {wide}"]),
        ("Act 1. plays\n{page}\nWhat was seen\n   ✓ one\n", ["the demo does not offer its live page"]),
    ],
)
def test_countChecklist_ofADemo_findsItsFailures(output: str, failures: list[str]) -> None:
    words = {"page": "   head-end   http://127.0.0.1:8080/   (a live page: open it to watch)", "wide": "x" * 100}
    part = parts.Part("demo", "make demo", [])
    found = parts.count_checklist(part, output.format(**words))
    assert found.failures == [failure.format(**words) for failure in failures]
    assert found.passed == output.count("✓")


def test_keep_interrupted_servesThePageUntilThenAndKeepsTheFiles(tmp_path: Path) -> None:
    program = [sys.executable, "-c", KEEPS.format(scripts=str(ROOT / "scripts")), str(tmp_path)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        page = child.stdout.readline().strip()
        try:
            told = "".join(iter(child.stdout.readline, "Ctrl-C ends the head-end.\n"))
            with urllib.request.urlopen(page, timeout=20) as reply:
                assert b"<html" in reply.read()
        finally:
            child.send_signal(signal.SIGINT)
        assert child.stdout.read().split() == ["ended", "False"]
        assert child.wait(20) == 0
    assert page in told and str(tmp_path) in told
    assert (tmp_path / "headend.txt").exists()
