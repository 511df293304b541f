"""A host has a guardian and a journal. When the host dies, the guardian gives the slot back within a second. The
journal still has the record, so the next context tears the session down again: this must not harm a new session. If the
guardian dies together with the host, the journal gives the slot back (docs/guardian.md, docs/recovery.md)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from killing import SYSTEMS, Killing, guardians, wait_until

from usher.testing.headend import Fault


@pytest.mark.parametrize("way", list(SYSTEMS))
def test_hostKilled_guardianGivesTheSlotBack_andTheNextContextHarmsNothing(
    killing: Killing, tmp_path: Path, way: str
) -> None:
    journal = tmp_path / "journal"
    with killing.playing(way, journal_file=journal) as host:
        host.kill()
        killing.wait_free(host.account)
    with killing.playing(way, account=host.account, journal_file=journal) as second:
        assert killing.held(host.account) == 1, killing.story()
        second.proceed()
        second.wait_line("freed")
        assert killing.held(host.account) == 0, killing.story()
    assert set(journal.read_bytes()) == {0}, "records stay in the journal after all sessions have ended"


def test_hostAndGuardianKilled_nextContextGivesTheSlotBack(killing: Killing, tmp_path: Path) -> None:
    """The test stops the host (SIGSTOP), so that the host cannot start a new guardian, and then kills guardian and
    host. Neither of them sends a teardown, as at a loss of power."""
    journal = tmp_path / "journal"
    with killing.playing(journal_file=journal) as host:
        process = host.guardian()
        os.kill(host.process.pid, signal.SIGSTOP)
        os.kill(process, signal.SIGKILL)
        wait_until(lambda: process not in guardians(), "the guardian runs")
        host.kill()
    assert killing.held(host.account) == 1
    left = killing.headend.sessions.active(host.account)[0]
    with killing.playing(account=host.account, journal_file=journal):
        assert left.id not in {session.id for session in killing.headend.sessions.active(host.account)}
        assert killing.held(host.account) == 1, killing.story()


def test_serverThatRefusesTheGuardian_nextContextTriesAgain(killing: Killing, tmp_path: Path) -> None:
    """The guardian repeats no teardown that the server refuses, and ends. The record is still in the journal."""
    journal = tmp_path / "journal"
    with killing.playing(journal_file=journal) as host:
        process = host.guardian()
        killing.headend.faults.add("teardown", Fault.status(403))
        host.kill()
        wait_until(lambda: process not in guardians(), "the guardian runs")
    left = killing.headend.sessions.active(host.account)[0]
    with killing.playing(account=host.account, journal_file=journal):
        assert left.id not in {session.id for session in killing.headend.sessions.active(host.account)}


def test_livingHost_keepsItsSession_whenAnotherHostStartsWithItsJournal(killing: Killing, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with killing.playing(journal_file=journal) as lives:
        with killing.playing(journal_file=journal) as other:
            other.proceed()
            other.wait_line("freed")
        assert killing.held(lives.account) == 1
        lives.kill()
        killing.wait_free(lives.account)


def test_contextFreed_leavesNeitherGuardianNorRecord(killing: Killing, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with killing.playing(journal_file=journal) as host:
        process = host.guardian()
        assert set(journal.read_bytes()) != {0}
        host.proceed()
        host.wait_line("freed")
        wait_until(lambda: process not in guardians(), "the guardian runs")
    assert set(journal.read_bytes()) == {0}
