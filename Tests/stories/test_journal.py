"""A host with a journal dies by kill -9 while it holds a session. The next context with this journal gives the slot
back before it sets up its first session."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import usher
from stage import REAL_TIMEOUT_S, Stage, StageFactory
from usher.testing.headend import Fault, HeadEnd

HERE = Path(__file__).resolve().parent
E = usher.EventType
KEY = bytes(range(32))
CLEAR = {"journal_in_clear": True}
ENCRYPTED = {"journal_key": KEY}
WAYS = pytest.mark.parametrize("options", [CLEAR, ENCRYPTED], ids=["clear", "encrypted"])


class Host:
    """journal_host.py as a child process that plays one item."""

    def __init__(self, headend: HeadEnd, journal: Path, environment: dict[str, str], **options: Any) -> None:
        if "journal_key" in options:
            options["journal_key"] = options["journal_key"].hex()
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "journal_host.py")],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(usher.__file__).parents[1]),
                "SWIFT_BACKTRACE": "enable=no",
                **environment,
            },
        )
        given = {
            "license_url": headend.license_url("clearkey"),
            "ssm_url": headend.ssm_url,
            "token": headend.content_token("a"),
            "context": {"journal_file": str(journal), **options},
        }
        assert self.tell(json.dumps(given)) == "playing"

    def tell(self, line: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end_input(self) -> None:
        """Closes the pipes of the host. Child processes of the host read the end of their input, and end."""
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def host(journal: Path) -> Iterator[Callable[..., Host]]:
    """Returns a function that starts a host for a head-end."""
    hosts: list[Host] = []

    def start(headend: HeadEnd, environment: dict[str, str] | None = None, **options: Any) -> Host:
        hosts.append(Host(headend, journal, environment or {}, **(options or CLEAR)))
        return hosts[-1]

    yield start
    for one in hosts:
        one.kill()
        one.end_input()


@pytest.fixture
def headend(headend_factory: Callable[..., HeadEnd]) -> HeadEnd:
    """A head-end whose accounts may have one session."""
    return headend_factory(limit=1, period_s=60)


def play(stage: Stage, **options: Any) -> usher.Playback:
    return stage.play(stage.headend.content_token("a"), **options)


def events(stage: Stage) -> list[str]:
    """Returns the types of the events in the order in which they happened. Events of different playbacks may reach the
    observer in another order."""
    return [event.type.name for event in sorted(stage.events.all(), key=lambda event: event.sequence)]


def recovered(stage: Stage) -> list[usher.Event]:
    return stage.events.all(E.RECOVERED_SLOT)


@pytest.mark.shows("journal-slot")
@WAYS
def test_hostKilled_nextContextGivesTheSlotBackBeforeItsFirstSetup(
    stage_factory: StageFactory,
    headend: HeadEnd,
    host: Callable[..., Host],
    journal: Path,
    options: dict[str, Any],
) -> None:
    """The account may have one session, and a killed host holds it. The next context plays at once."""
    host(headend, **options).kill()
    assert len(headend.sessions.active()) == 1
    stage = stage_factory(headend, journal_file=journal, **options)
    playback = play(stage)
    stage.settle()
    assert stage.routes() == ["setup", "teardown", "setup"]
    assert [(e.error, e.playback, e.orphan_possible) for e in recovered(stage)] == [(None, None, False)]
    assert events(stage)[:2] == ["RECOVERED_SLOT", "SESSION_STARTED"]
    assert stage.clear_keys(playback)
    stage.close()
    assert set(journal.read_bytes()) == {0}, "records stay in the journal after all sessions have ended"


@WAYS
def test_hostKilledAfterHeartbeats_teardownHasTheNewestToken(
    stage_factory: StageFactory,
    headend: HeadEnd,
    host: Callable[..., Host],
    journal: Path,
    options: dict[str, Any],
) -> None:
    """Each heartbeat replaces the session token. The teardown after the death of the host carries the newest one."""
    killed = host(headend, **options)
    for _ in range(2):
        headend.advance(60_000)
        assert killed.tell("60000") == "moved"
    killed.kill()
    token = headend.journal.entries(route="heartbeat")[-1].session_token
    assert token is not None
    stage = stage_factory(headend, journal_file=journal, **options)
    stage.settle()
    assert stage.seqs() == [("setup", None), ("heartbeat", 1), ("heartbeat", 2), ("teardown", 3)]
    assert not headend.sessions.active()


def test_livingHost_withTheSameJournal_keepsItsSession(
    stage_factory: StageFactory, headend_factory: Callable[..., HeadEnd], host: Callable[..., Host], journal: Path
) -> None:
    """Two hosts and a context use one journal at the same time; none of them touches the sessions of the others. After
    all have ended, the next context gives the slots of both hosts back."""
    headend = headend_factory(limit=3, period_s=60)
    first, second = host(headend), host(headend)
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    play(stage)
    stage.settle()
    assert stage.routes() == ["setup", "setup", "setup"]
    first.kill()
    second.kill()
    stage.close()
    third = stage_factory(headend, journal_file=journal, **CLEAR)
    third.settle()
    assert third.routes() == ["setup", "setup", "setup", "teardown", "teardown", "teardown"]
    assert [e.error for e in recovered(third)] == [None, None]


def test_serverDoesNotAnswer_firstSetupWaitsOnlyForTheStatedTime(
    stage_factory: StageFactory, headend_factory: Callable[..., HeadEnd], host: Callable[..., Host], journal: Path
) -> None:
    """The server does not answer the teardown of the dead host's session. The first set-up waits for
    `recovery_wait_ms`; the teardown continues."""
    headend = headend_factory(limit=2, period_s=60)
    host(headend).kill()
    headend.faults.add("teardown", Fault.stall())
    stage = stage_factory(headend, journal_file=journal, recovery_wait_ms=2000, **CLEAR)
    play(stage)
    stage.advance(1999)
    assert stage.routes() == ["setup", "teardown"]
    stage.advance(1)
    assert stage.routes() == ["setup", "teardown", "setup"]
    assert events(stage) == ["SESSION_STARTED"]
    headend.release()
    stage.settle()
    assert [e.error for e in recovered(stage)] == [None]


def test_setupRefusedAfterTheWait_isRepeatedWhenTheSlotIsFree(
    stage_factory: StageFactory, headend: HeadEnd, host: Callable[..., Host], journal: Path
) -> None:
    """The teardown of the dead host's session takes longer than `recovery_wait_ms`. So the library sends the set-up
    earlier, and the server refuses it. When the teardown is answered, the library repeats the set-up."""
    host(headend).kill()
    headend.faults.add("teardown", Fault.stall())
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    play(stage)
    stage.advance(3000)
    assert stage.routes() == ["setup", "teardown", "setup"]
    headend.release()
    stage.settle()
    assert stage.routes() == ["setup", "teardown", "setup", "setup"]
    assert events(stage) == ["RECOVERED_SLOT", "SESSION_STARTED"]


def test_itemsClosedOrReplacedDuringTheWait_areNotSetUp(
    stage_factory: StageFactory, headend: HeadEnd, host: Callable[..., Host], journal: Path
) -> None:
    """While the library waits for the teardown of the dead host's session, the host zaps twice, and closes an item on
    another player. Only the newest item gets a session."""
    host(headend).kill()
    headend.faults.add("teardown", Fault.stall())
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    for tag in ("first", "second", "third"):
        play(stage, tag=tag)
    other = play(stage, player=usher.Player(stage.context), tag="closed")
    stage.settle()
    other.close()
    stage.settle()
    assert stage.events.types("closed") == ["PLAYBACK_CLOSED"]
    headend.release()
    stage.settle()
    assert stage.routes() == ["setup", "teardown", "setup"]
    assert stage.events.types("third") == ["SESSION_STARTED"]
    assert stage.events.types("first") == stage.events.types("second") == ["PLAYBACK_CLOSED"]


def test_serverNoLongerKnowsTheSession_hostIsTold_andTheItemPlays(
    stage_factory: StageFactory, headend: HeadEnd, host: Callable[..., Host], journal: Path
) -> None:
    """The head-end answers the teardown of the dead host's session with 1006 (unknown session). The library reports
    this in RECOVERED_SLOT, and does not try again."""
    host(headend).kill()
    headend.faults.add("teardown", Fault.error(1006, processed=True))
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    play(stage)
    stage.settle()
    (event,) = recovered(stage)
    assert event.error is not None
    assert (event.error.service_code, event.error.operation, event.orphan_possible) == (
        1006,
        usher.Operation.TEARDOWN,
        True,
    )
    assert stage.routes() == ["setup", "teardown", "setup"]
    stage.close()
    again = stage_factory(headend, journal_file=journal, **CLEAR)
    again.settle()
    assert not recovered(again)


def test_serverIsAway_recordStaysForTheNextStart(
    stage_factory: StageFactory, headend: HeadEnd, host: Callable[..., Host], journal: Path
) -> None:
    """The server closes the connection at each teardown. RECOVERED_SLOT reports this error to the host, and the next
    context tries the teardown again."""
    host(headend).kill()
    headend.faults.add("teardown", Fault.drop(), always=True)
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    stage.advance(20_000)
    (event,) = recovered(stage)
    assert isinstance(event.error, usher.TransportError)
    assert headend.sessions.active()
    stage.close()
    again = stage_factory(headend, journal_file=journal, **CLEAR)
    again.settle()
    assert [e.error for e in recovered(again)] == [None]
    assert not headend.sessions.active()


def close_without_answer(stage: Stage) -> None:
    """Plays an item, and closes it while the server is away, until the library has given up the teardown."""
    playback = play(stage)
    stage.settle()
    stage.headend.faults.add("teardown", Fault.drop(), always=True)
    playback.close()
    stage.advance(30_000)
    assert events(stage) == ["SESSION_STARTED", "TEARDOWN_ERROR", "SESSION_ENDED", "PLAYBACK_CLOSED"]
    assert stage.headend.sessions.active()


def test_networkAwayWhileAnItemCloses_nextContextGivesTheSlotBack(
    stage_factory: StageFactory, headend: HeadEnd, journal: Path
) -> None:
    """The record stays, so the next context tears the session down."""
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    close_without_answer(stage)
    stage.close()
    headend.faults.clear()
    again = stage_factory(headend, journal_file=journal, **CLEAR)
    play(again)
    again.settle()
    assert [e.error for e in recovered(again)] == [None]
    assert events(again) == ["RECOVERED_SLOT", "SESSION_STARTED"]


def test_networkAwayWhileAnItemCloses_theRecordGoesWhenItIsOver(
    stage_factory: StageFactory, headend: HeadEnd, journal: Path
) -> None:
    """The context lives on for four periods. When it closes, the record goes."""
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    close_without_answer(stage)
    assert set(journal.read_bytes()) != {0}
    stage.advance(4 * 60_000)
    stage.close()
    assert set(journal.read_bytes()) == {0}


@pytest.mark.parametrize("status", [302, 407, 408, 425, 429])
def test_replyThatIsNotFinal_recordStaysForTheNextStart(
    stage_factory: StageFactory, headend: HeadEnd, host: Callable[..., Host], journal: Path, status: int
) -> None:
    """A network that asks for a sign-in, a proxy, or a busy server answers the teardown with a status after which the
    same request may succeed. The next context tries the teardown again."""
    host(headend).kill()
    headend.faults.add("teardown", Fault.status(status), always=True)
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    stage.advance(20_000)
    (event,) = recovered(stage)
    assert event.error is not None and event.error.http_status == status
    stage.close()
    headend.faults.clear()
    again = stage_factory(headend, journal_file=journal, **CLEAR)
    again.settle()
    assert [e.error for e in recovered(again)] == [None]
    assert not headend.sessions.active()


def test_contextFreedBeforeTheTeardownIsAnswered_nextContextGivesTheSlotBack(
    stage_factory: StageFactory, headend: HeadEnd, journal: Path
) -> None:
    """The head-end does not answer the teardown while a context closes. The next context with the same journal tears
    the session down."""
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    play(stage)
    stage.settle()
    headend.faults.add("teardown", Fault.stall(), always=True)
    closing = stage.call(stage.context.close)
    while stage.still_waiting(closing):
        stage.context.advance(1000)
    assert stage.events.error(E.TEARDOWN_ERROR).orphan_possible
    headend.faults.clear()
    headend.catch_up()
    again = stage_factory(headend, journal_file=journal, **CLEAR)
    play(again)
    again.settle()
    assert [e.error for e in recovered(again)] == [None]
    assert events(again) == ["RECOVERED_SLOT", "SESSION_STARTED"]


def test_childOfTheDeadHost_doesNotKeepTheLock(
    stage_factory: StageFactory, headend: HeadEnd, host: Callable[..., Host], journal: Path
) -> None:
    """The host forks a child without exec, and dies. The child lives on, and the next context still gives the slot
    back."""
    killed = host(headend)
    assert killed.tell("fork") == "forked"
    killed.kill()
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    stage.settle()
    assert [e.error for e in recovered(stage)] == [None]
    assert not headend.sessions.active()


@pytest.mark.shows("journal-key")
@pytest.mark.leaves_session
def test_anotherKey_nothingIsTornDown_andTheHostIsTold(
    stage_factory: StageFactory, headend_factory: Callable[..., HeadEnd], host: Callable[..., Host], journal: Path
) -> None:
    """The next context has another key. So it cannot read the records, and it reports this. The file contains neither
    the token of the set-up nor the URL of the SSM in clear."""
    headend = headend_factory(limit=2, period_s=60)
    host(headend, **ENCRYPTED).kill()
    written = journal.read_bytes()
    entry = headend.journal.entries(route="setup")[0]
    assert not [part for part in entry.parts if part.raw.encode() in written]
    assert headend.ssm_url.encode() not in written
    stage = stage_factory(headend, journal_file=journal, journal_key=bytes(32))
    playback = play(stage)
    stage.settle()
    assert stage.routes() == ["setup", "setup"]
    assert "journal_key is another key" in str(stage.events.error(E.JOURNAL_ERROR))
    playback.close()
    stage.settle()


@pytest.mark.shows("journal-clear")
def test_journalInClear_hasTheToken_andOnlyItsOwnerMayReadTheFile(
    stage_factory: StageFactory, headend: HeadEnd, journal: Path
) -> None:
    """The journal is not encrypted. While the session lives, its record is readable in the file (the test searches for
    the URL of the SSM); after the teardown it is not. The file has the mode 0600."""
    stage = stage_factory(headend, journal_file=journal, **CLEAR)
    playback = play(stage)
    stage.settle()
    assert headend.ssm_url.encode() in journal.read_bytes()
    assert journal.stat().st_mode & 0o7777 == 0o600
    playback.close()
    stage.settle()
    assert headend.ssm_url.encode() not in journal.read_bytes()


def test_journalThatCannotBeUsed_isReported_andTheItemPlays(stage_factory: StageFactory, tmp_path: Path) -> None:
    """The library cannot use the path as a journal: it leads to a link, a FIFO or a directory, to a missing folder, or
    to a file that other users may read."""
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "open").touch(0o644)
    texts = {
        "link": "the journal cannot be opened: Too many levels of symbolic links",
        "fifo": "the journal cannot be opened: not a regular file",
        "open": "other users may read or write the file; set its mode to 0600",
        "missing/journal": "the journal cannot be opened: No such file or directory",
        ".": "the journal cannot be opened: Is a directory",
    }
    for name, text in texts.items():
        stage = stage_factory(journal_file=tmp_path / name, **CLEAR)
        playback = stage.play()
        stage.settle()
        assert text in str(stage.events.error(E.JOURNAL_ERROR)), name
        assert any(text in line and line.startswith("JOURNAL_ERROR") for line in stage.logs), stage.logs
        assert events(stage) == ["JOURNAL_ERROR", "SESSION_STARTED"]
        playback.close()
        stage.settle()
    assert not (tmp_path / "target").exists()


@pytest.fixture
def bad_disk(tmp_path: Path) -> dict[str, str]:
    """The environment of a host that preloads the library of bad_disk.c. Three variables name files: while such a file
    exists, the disk is slow, broken or full. BAD_DISK_LOG names the file that counts the calls of fdatasync()."""
    shim = tmp_path / "bad_disk.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", shim, HERE / "bad_disk.c", "-ldl"]
    subprocess.run(command, timeout=60, check=True)
    names = ("BAD_DISK_LOG", "BAD_DISK_SLOW", "BAD_DISK_BROKEN", "BAD_DISK_FULL")
    before = [os.environ["LD_PRELOAD"]] if os.environ.get("LD_PRELOAD") else []
    return {"LD_PRELOAD": ":".join([*before, str(shim)]), **{name: str(tmp_path / name) for name in names}}


def until_synced(disk: dict[str, str], count: int) -> None:
    """Waits until the host has called fdatasync() at least `count` times."""
    log, deadline = Path(disk["BAD_DISK_LOG"]), time.monotonic() + REAL_TIMEOUT_S
    while not log.exists() or log.stat().st_size < count:
        assert time.monotonic() < deadline, "the host did not call fdatasync()"
        time.sleep(0.002)


def test_diskThatDoesNotWrite_delaysNoHeartbeat(
    headend: HeadEnd, host: Callable[..., Host], bad_disk: dict[str, str]
) -> None:
    """fdatasync() does not return. The session still starts, and its heartbeats are on time."""
    Path(bad_disk["BAD_DISK_SLOW"]).touch()
    killed = host(headend, bad_disk)
    until_synced(bad_disk, 1)
    for _ in range(3):
        headend.advance(60_000)
        assert killed.tell("60000") == "moved"
    assert headend.journal.routes() == ["setup", "heartbeat", "heartbeat", "heartbeat"]
    assert Path(bad_disk["BAD_DISK_LOG"]).read_text() == "s"


def test_diskThatBreaks_isReportedOnceWithAHeartbeat(
    headend: HeadEnd, host: Callable[..., Host], bad_disk: dict[str, str]
) -> None:
    """fdatasync() fails each time. The host gets JOURNAL_ERROR once, at one of the next heartbeats, and the session
    continues."""
    Path(bad_disk["BAD_DISK_BROKEN"]).touch()
    playing = host(headend, bad_disk)
    until_synced(bad_disk, 1)
    told: list[str] = []
    while told.count("moved") == len(told) < 100:
        headend.advance(60_000)
        told.append(playing.tell("60000"))
    assert told[-1] == "moved the disk does not write the journal: Input/output error"
    headend.advance(60_000)
    assert playing.tell("60000") == "moved"
    assert headend.journal.routes() == ["setup", *["heartbeat"] * (len(told) + 1)]


def test_diskThatBecomesFull_isReportedOnceWithTheNextHeartbeat(
    headend: HeadEnd, host: Callable[..., Host], bad_disk: dict[str, str]
) -> None:
    """The disk is full, so the library cannot write the newest token into the journal. The host gets JOURNAL_ERROR
    once, and the session continues."""
    playing = host(headend, bad_disk)
    Path(bad_disk["BAD_DISK_FULL"]).touch()
    told = []
    for _ in range(3):
        headend.advance(60_000)
        told.append(playing.tell("60000"))
    assert told == ["moved the journal cannot be written: No space left on device", "moved", "moved"]
    assert headend.journal.routes() == ["setup", "heartbeat", "heartbeat", "heartbeat"]


FULL = """
import os, subprocess, sys
folder = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", sys.argv[2], "none", folder], check=True)
import usher
kept = []
context = usher.Context(journal_file=folder + "/journal", journal_in_clear=True)
context.add_observer(lambda event: kept.append(event))
context.settle(timeout_ms=10000)
print(*(f"{event.type.name}: {event.error}" for event in kept), sep="\\n")
context.close()
"""


@pytest.mark.parametrize(
    ("options", "text"), [("size=64k", "No space left on device"), ("ro", "Read-only file system")], ids=["full", "ro"]
)
def test_journalOnAFullOrReadOnlyDisk_isReported(tmp_path: Path, options: str, text: str) -> None:
    """The disk has less room than the journal needs, or is read-only. The context works without the journal."""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system lets nobody mount a file system of his own")
    told = subprocess.run(
        [*command, sys.executable, "-c", FULL, str(tmp_path), options],
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(usher.__file__).parents[1]), "SWIFT_BACKTRACE": "enable=no"},
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("JOURNAL_ERROR: the journal cannot be "), told
    assert text in told.stdout


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"journal_file": "j"}, "journal_key: missing; set it, or set journal_in_clear"),
        ({"journal_file": "j", "journal_key": KEY, "journal_in_clear": True}, "journal_in_clear: journal_key is set"),
        ({"journal_file": "j", "journal_key": KEY[:16]}, "journal_key_size: not 32"),
        ({"journal_file": "", "journal_in_clear": True}, "journal_file: "),
        ({"journal_key": KEY}, "journal_file: missing"),
        ({"journal_in_clear": True}, "journal_file: missing"),
    ],
)
def test_journalOptions_thatDoNotFit_areRefused(
    lib: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], text: str
) -> None:
    """The options of the journal are incomplete, contradict each other or are malformed. The library makes no file."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(usher.InvalidArgumentError) as caught:
        usher.Context(**options)
    assert text in str(caught.value)
    assert KEY.hex() not in repr(caught.value)
    assert not list(tmp_path.iterdir())
