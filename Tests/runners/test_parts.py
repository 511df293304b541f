"""scripts/parts.py runs the parts of `make test`, several at the same time, and prints their results in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import parts  # noqa: E402
from parts import Count, Part, Schedule, count_xml, summary  # noqa: E402

MEETS = "touch {me}; until [ -e {other} ]; do sleep 0.02; done; echo 'ok - {me} met {other}'"
"""A command that ends only if the part with the other name runs at the same time, or has run before."""
COUNTS = "mkdir run-{me}; ls -d run-* | wc -l >>most; sleep 0.2; rmdir run-{me}; echo 'ok - {me}'"
"""A command that adds a line to the file `most`: how many of these commands run at this moment."""
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {scripts!r})
from parts import Part, run_parts
here = Path(__file__).parent
command = ["sh", "-c", "trap '' TERM; sleep 600 & echo $! >$0.pid; wait"]
two = [Part(name, name, [*command, name], folder=here, logs=here, cores=1) for name in ("one", "two")]
try:
    run_parts("two parts", two, [])
except KeyboardInterrupt:
    sys.exit(130)
"""
WHILE_A_LOCK_IS_HELD = """
import concurrent.futures._base as base, os, signal, time
def acquire_and_interrupt(futures):
    while not all(part.logs.joinpath(part.name + ".pid").exists() for part in two):
        time.sleep(0.02)
    acquire(futures)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
acquire = base._AcquireFutures.__enter__
base._AcquireFutures.__enter__ = acquire_and_interrupt
try:"""


@pytest.fixture(autouse=True)
def _logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ROOT", tmp_path)  # tell_failures() prints paths relative to it


def run(folder: Path, cores: float, *chosen: Part) -> dict[str, Count]:
    with ThreadPoolExecutor(len(chosen)) as pool:
        return {part.name: count for part, count, _ in Schedule(list(chosen), cores, pool).run()}


def part(folder: Path, name: str, command: str, cores: float, needs: tuple[str, ...] = ()) -> Part:
    return Part(
        name, f"part {name}", ["sh", "-c", command], timeout_s=20, folder=folder, logs=folder, cores=cores, needs=needs
    )


def test_partThatWaits_runsBesideThoseThatCompute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first part ends only when the last one runs. All three need 2.2 cores, so all three run at the same time. The
    results are printed in the order of the parts, although the first part ends last."""
    chosen = [
        part(tmp_path, "one", MEETS.format(me="one", other="three") + "; sleep 0.3", 0.2),
        part(tmp_path, "two", MEETS.format(me="two", other="one"), 1),
        part(tmp_path, "three", MEETS.format(me="three", other="two"), 1),
    ]
    counts = run(tmp_path, 2.2, *chosen)
    assert [count.passed for count in counts.values()] == [1, 1, 1]
    told = capsys.readouterr().out.splitlines()
    assert [line.split(" ... ok: 1 passed, ")[0] for line in told] == [
        "[ 1/3] part one",
        "[ 2/3] part two",
        "[ 3/3] part three",
    ]


@pytest.mark.parametrize(("cores", "most"), [(2.0, 2), (1.0, 1)])
def test_parts_neverNeedMoreCoresThanThereAre(tmp_path: Path, cores: float, most: int) -> None:
    """Four parts need one core each, and a fifth needs more than the machine has. With two cores, never more than two
    parts run at the same time, but at some moment two do. With one core, the parts run one after the other."""
    names = ("a", "b", "c", "d", "e")
    chosen = [part(tmp_path, name, COUNTS.format(me=name), 8 if name == "c" else 1) for name in names]
    assert all(count.passed == 1 for count in run(tmp_path, cores, *chosen).values())
    assert max(map(int, (tmp_path / "most").read_text().split())) == most


def test_partAlone_runsAfterThoseBeforeIt_andBesideNone(tmp_path: Path) -> None:
    """The part in the middle measures times: while it runs, no other part runs."""
    alone = "ls -d run-* 2>/dev/null; sleep 0.3; ls -d run-* 2>/dev/null; ls >seen; echo 'ok - alone'"
    chosen = [part(tmp_path, name, COUNTS.format(me=name), 0.1) for name in ("a", "b")]
    chosen += [
        replace(part(tmp_path, "alone", alone, 0.1), alone=True),
        part(tmp_path, "c", COUNTS.format(me="c"), 0.1),
    ]
    run(tmp_path, 2, *chosen)
    assert (tmp_path / "alone.log").read_text() == "ok - alone\n"
    assert {"a.log", "b.log"} <= set((tmp_path / "seen").read_text().split()) and not (tmp_path / "run-c").exists()
    assert "c.log" not in (tmp_path / "seen").read_text()


def test_partWhoseNeedFailed_doesNotRun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A part fails: its failure and the last lines of its log are printed. The part that needs it does not run; a third
    part runs."""
    chosen = [
        part(tmp_path, "bad", "echo 'not ok - a claim'; exit 1", 0.1),
        part(tmp_path, "after", "echo 'ok - never'", 0.1, needs=("bad",)),
        part(tmp_path, "other", "echo 'ok - other'", 0.1),
    ]
    counts = run(tmp_path, 2, *chosen)
    assert counts["bad"].failures == ["a claim"]
    assert counts["after"].failures == ["after: needs bad, which failed"]
    assert counts["other"].passed == 1
    told = capsys.readouterr().out
    assert "part bad ... FAILED: 1 failed, 0 passed" in told
    assert "      not ok: a claim\n      --- last lines of bad.log ---\n      not ok - a claim\n" in told


def test_partThatNeedsALaterOne_isRefused(tmp_path: Path) -> None:
    """run_parts() refuses a list in which a part comes before another part that it needs: the first part would start
    too early."""
    wrong = [part(tmp_path, "user", "true", 0.1, needs=("library",)), part(tmp_path, "library", "true", 0.1)]
    with pytest.raises(ValueError, match="user needs library, which must come before it"):
        parts.run_parts("two parts", wrong, [])


def test_summary_hasTheProcessorTimeOfEachPart(tmp_path: Path) -> None:
    """A part computes in a child process, and another one sleeps: only the first one uses processor time."""
    compute = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.5: pass'; echo 'ok - computed'"
    chosen = [part(tmp_path, "computes", compute, 1), part(tmp_path, "sleeps", "sleep 0.5; echo 'ok - slept'", 0.1)]
    counts = run(tmp_path, 2, *chosen)
    assert 0.45 <= counts["computes"].cpu_s < 5 and counts["sleeps"].cpu_s < 0.3


@pytest.mark.parametrize("start", ['exec "$@"', 'trap "" INT; exec "$@"'], ids=["usual", "background"])
def test_interrupt_endsEveryCommand(tmp_path: Path, start: str) -> None:
    """The user presses Ctrl-C while two parts run: the program ends at once, with both commands and their children,
    although these ignore SIGTERM. In one of two cases the program starts with SIGINT ignored, as in the background."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(scripts=str(ROOT / "scripts")))
    command = ["sh", "-c", start, "sh", sys.executable, str(program)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with ending(running, tmp_path):
        end = time.monotonic() + 20
        while not all(file.exists() and file.read_text().strip() for file in pid_files(tmp_path)):
            assert running.poll() is None and time.monotonic() < end, "the program has not started both parts"
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)


def test_interrupt_whileALockIsHeld_endsTheRun(tmp_path: Path) -> None:
    """The user presses Ctrl-C while the program has locked the results that its threads set: the program still ends."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(scripts=str(ROOT / "scripts")).replace("\ntry:", WHILE_A_LOCK_IS_HELD))
    running = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with ending(running, tmp_path):
        pass


def pid_files(folder: Path) -> list[Path]:
    return [folder / "one.pid", folder / "two.pid"]


@contextmanager
def ending(running: subprocess.Popen[bytes], folder: Path) -> Iterator[None]:
    """Checks, after its block, that the program ends as after Ctrl-C, and that the children of its commands have
    ended."""
    try:
        yield
        output, _ = running.communicate(timeout=20)
    finally:
        running.kill()
        running.wait()
        for file in pid_files(folder):
            with suppress(OSError, ValueError):
                os.killpg(os.getpgid(int(file.read_text())), signal.SIGKILL)
    assert running.returncode == 130 and b"Traceback" not in output, output
    for file in pid_files(folder):
        assert has_ended(int(file.read_text())), file


def has_ended(pid: int) -> bool:
    """Returns whether the process has ended. A zombie has ended too: only its parent has not collected its status."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


RESULTS = """
<testsuites><testsuite>
<testcase classname="story" name="good"/>
<testcase classname="story" name="left out"><skipped message="no GPU"/></testcase>
<testcase classname="story" name="late">
<failure message="AssertionError: 450 ms late&#10;assert 450 &lt; 400">text</failure>
</testcase>
<testcase classname="story" name="late"><error message="clean-up">text</error></testcase>
<testcase classname="story" name="mute"><failure>text</failure></testcase>
</testsuite></testsuites>
"""


def test_summary_namesEachFailureWithItsError(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A part writes JUnit XML. A test failed, and then its clean-up: the last lines of the run name it once, with the
    first line of its error. Another test failed without a message: they have its name."""
    (tmp_path / "results").write_text(RESULTS.strip())
    copies = replace(part(tmp_path, "stories", "cp results stories.xml; exit 1", 0.1), count=count_xml)
    count = run(tmp_path, 2, copies)["stories"]
    summary([(copies, count, 1)], 1)
    assert (count.passed, count.skipped) == (1, 1)
    told = capsys.readouterr().out
    assert told.endswith("\nFailed\n   stories: story.late: AssertionError: 450 ms late\n   stories: story.mute\n")
