"""The guardian tears down the sessions of a host that has died, and never those of a host that lives. The oracle is the
head-end's session table: its sessions do not expire during a test (docs/guardian.md)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
from damaged import Area
from killing import HERE, PATIENCE, ROOT, SYSTEMS, Killing, guardian, guardians, parent_of, status_of, wait_until

import usher
from stage.raw import RawServer
from usher.testing.headend import Fault, HeadEnd
from usher.testing.headend.fixtures import Authority
from usher.testing.headend.state.sessions import SessionState

WAYS = list(SYSTEMS)


def torn_down(killing: Killing, account: str) -> int:
    return len(killing.headend.sessions.in_state(SessionState.TORN_DOWN, account))


def teardowns(killing: Killing) -> int:
    return len(killing.headend.journal.entries(route="teardown"))


def script(folder: Path, commands: str) -> Path:
    """Writes a program of the shell in the place of the guardian's."""
    program = folder / "usher-guardian"
    program.write_text(f"#!/bin/sh\n{commands}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


# ---- the host dies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_host_killed_itsSessionIsTornDown_andTheGuardianEnds(killing: Killing, way: str) -> None:
    with killing.playing(way) as host:
        assert killing.held(host.account) == 1
        process = host.guardian()
        host.kill()
        killing.wait_free(host.account)
        assert torn_down(killing, host.account) == 2
        wait_until(lambda: process not in guardians(), "the guardian runs")


@pytest.mark.parametrize("ends", ["_exits", "aborts", "execs", "returns"])
def test_host_thatEndsWithoutAClose_itsSessionIsTornDown(killing: Killing, ends: str) -> None:
    """The process ends in a way other than by SIGKILL, or executes another program. The guardian tears its session
    down."""
    with killing.playing(ends=ends) as host:
        host.proceed()
        killing.wait_free(host.account)


def test_host_whoseChildKeepsTheChannel_isFoundDeadAllTheSame(killing: Killing) -> None:
    """A child of fork() has a copy of the host's end of the channel, so the channel does not end with the host. The
    guardian notices the end of the host by its pidfd. The child lives on."""
    with killing.playing(ends="forks") as host:
        host.proceed()
        host.wait_line("forked")
        child = int(host.lines[-1].split()[1])
        try:
            assert host.process.wait(20) == 5
            killing.wait_free(host.account)
            os.kill(child, 0)
        finally:
            os.kill(child, signal.SIGKILL)


def test_childOfFork_thatExits_leavesTheSessionsOfItsParent(killing: Killing) -> None:
    """The host has set `close_at_exit_ms`. The child runs the host's exit handlers, but they tear nothing down."""
    with killing.playing(ends="child-exits", exit_ms=2000) as host:
        host.proceed()
        host.wait_line("forked")
        time.sleep(0.2)
        assert killing.held(host.account) == 1
        host.kill()
        killing.wait_free(host.account)


def test_hundredsOfSessions_areTornDownInParallel(killing: Killing) -> None:
    """The host has 300 sessions, and the server needs 0.2 s for each teardown. If the guardian sent one request after
    another, the teardowns would take a minute."""
    killing.headend.faults.add("teardown", Fault.delay(200), always=True)
    with killing.playing(sessions=300) as host:
        assert killing.held(host.account) == 300
        host.kill()
        print(f"300 sessions: {killing.wait_free(host.account):.2f} s")
        assert teardowns(killing) == 300


@pytest.mark.parametrize("way", WAYS)
def test_https_withCaFileAndCookies(secure: Killing, way: str) -> None:
    secure.headend.faults.add("*", Fault.header("Set-Cookie", "node=7; Path=/; Secure"), always=True)
    with secure.playing(way, cookies=1) as host:
        host.kill()
        secure.wait_free(host.account)
    newest = secure.headend.journal.entries(route="teardown")[-1]
    assert newest.header("Cookie") == "node=7"


def test_clientCertificate_isShownByTheGuardian(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server accepts only clients that have a certificate. The key has a pass phrase, and the paths are relative to
    the host's working folder."""
    clients = trustme.CA()
    identity = clients.issue_cert("client.example")
    for index, blob in enumerate(identity.cert_chain_pems):
        blob.write_to_path(str(tmp_path / "client.pem"), append=index > 0)
    identity.private_key_pem.write_to_path(str(tmp_path / "plain.key"))
    locked = ["openssl", "rsa", "-aes256", "-passout", "pass:phrase", "-in", "plain.key", "-out", "client.key"]
    if b"EC PRIVATE" in (tmp_path / "plain.key").read_bytes():
        locked[1] = "ec"
    subprocess.run(locked, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    usual = Authority.server_context

    def strict(self: Authority) -> object:
        context = usual(self)
        context.verify_mode = __import__("ssl").CERT_REQUIRED
        clients.configure_trust(context)
        return context

    monkeypatch.setattr(Authority, "server_context", strict)
    monkeypatch.chdir(tmp_path)
    with HeadEnd(period_s=10, grace=1000, tls=True) as made:
        killing = Killing(made, program)
        files = {"client_certificate_file": "client.pem", "client_key_file": "client.key"}
        with killing.playing(**files, client_key_passphrase="phrase") as host:
            host.kill()
            killing.wait_free(host.account)


def test_serverThatAsksToWait_isAskedAgainAfterThatTime(killing: Killing) -> None:
    with killing.playing() as host:
        before = teardowns(killing)
        killing.headend.faults.add("teardown", Fault.status(503, retry_after=1))
        host.kill()
        killing.wait_free(host.account)
        first, second = killing.headend.journal.entries(route="teardown")[before:]
        assert second.at_ms - first.at_ms >= 1000


@pytest.mark.parametrize("status", [302, 407, 408, 425, 429])
def test_replyAfterWhichARepetitionMaySucceed_isRepeated(killing: Killing, status: int) -> None:
    """The head-end answers the first teardown of the guardian with this status, and executes the second."""
    with killing.playing() as host:
        before = teardowns(killing)
        killing.headend.faults.add("teardown", Fault.status(status))
        host.kill()
        killing.wait_free(host.account)
    assert teardowns(killing) == before + 2, killing.story()


def test_serverThatIsAwayForAMoment_getsTheTeardownLater(killing: Killing) -> None:
    """No server listens when the host dies. The guardian repeats the teardown until the server is back."""
    with killing.playing() as host:
        killing.headend.stop()
        host.kill()
        time.sleep(0.5)
        killing.headend.start()
        killing.wait_free(host.account)


def test_serverThatRefuses_isNotAskedAgain(killing: Killing) -> None:
    """The server says that it does not know the session: the guardian ends."""
    with killing.playing() as host:
        before = teardowns(killing)
        killing.headend.faults.add("teardown", Fault.error(1006), always=True)
        process = host.guardian()
        host.kill()
        wait_until(lambda: process not in guardians(), "the guardian runs")
        assert teardowns(killing) == before + 1


# ---- the host lives --------------------------------------------------------------------------------------------------


def test_livingHost_besideOneThatDies_keepsItsSession(killing: Killing) -> None:
    with killing.playing() as lives, killing.playing() as dies:
        dies.kill()
        killing.wait_free(dies.account)
        assert killing.held(lives.account) == 1
        lives.proceed()
        lives.wait_line("freed")
        assert torn_down(killing, lives.account) == 2


def test_stoppedHost_besideOneThatDies_keepsItsSession(killing: Killing) -> None:
    """A stopped process (SIGSTOP) is not dead: its guardian waits."""
    with killing.playing() as stopped, killing.playing() as dies:
        stopped.process.send_signal(signal.SIGSTOP)
        dies.kill()
        killing.wait_free(dies.account)
        assert killing.held(stopped.account) == 1
        stopped.process.send_signal(signal.SIGCONT)
        stopped.proceed()
        stopped.wait_line("freed")
        assert torn_down(killing, stopped.account) == 2


def test_context_freed_endsTheGuardian_andThereIsNoSecondTeardown(killing: Killing) -> None:
    """The host frees the context and lives on: the guardian ends. When the host dies later, nobody sends a teardown."""
    with killing.playing() as host:
        process = host.guardian()
        host.proceed()
        host.wait_line("freed")
        wait_until(lambda: process not in guardians(), "the guardian runs")
        host.kill()
    assert teardowns(killing) == 2


def test_signalsForTheGroupOfTheHost_doNotEndTheGuardian(killing: Killing) -> None:
    """The guardian has its own session and process group. It gets the signals of Ctrl-C and of a service manager, and
    continues until the host has ended."""
    with killing.playing() as host:
        process = host.guardian()
        assert os.getsid(process) != os.getsid(host.process.pid)
        assert os.getpgid(process) != os.getpgid(host.process.pid)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1):
            os.kill(process, number)
        time.sleep(0.1)
        assert killing.held(host.account) == 1
        host.kill()
        killing.wait_free(host.account)


def test_guardian_killed_isReplaced_andTheSessionLives(killing: Killing) -> None:
    with killing.playing() as host:
        first = host.guardian()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: bool(guardians() - host.before - {first}), "no new guardian")
        assert killing.held(host.account) == 1
        host.kill()
        killing.wait_free(host.account)


def test_guardian_thatEndsAgainAndAgain_isReplacedFiveTimes_andTheLogSaysSo(killing: Killing, tmp_path: Path) -> None:
    """The guardian ends a tenth of a second after it has started. The library starts it five more times, and logs each
    of its six ends."""
    program = script(tmp_path, "sleep 0.1 & exit 0")
    with killing.playing(guardian_path=program) as host:
        assert host.process.stderr is not None
        warnings = [host.process.stderr.readline() for _ in range(6)]
        assert all("the guardian has ended; a new one starts in a second" in line for line in warnings[:5]), warnings
        assert "no new one is started" in warnings[5]
        assert killing.held(host.account) == 1
        children = Path(f"/proc/{host.process.pid}/task/{host.process.pid}/children")
        wait_until(lambda: not children.read_text(encoding="utf-8"), "a first process stays as a zombie")


# ---- the process -----------------------------------------------------------------------------------------------------


def test_guardian_isNoChildOfTheHost_andLeavesNoZombie(killing: Killing) -> None:
    with killing.playing() as host:
        assert parent_of(host.guardian()) != host.process.pid
        children = Path(f"/proc/{host.process.pid}/task/{host.process.pid}/children")
        assert children.read_text(encoding="utf-8") == ""
        for name in os.listdir("/proc"):
            if name.isdigit() and os.path.exists(f"/proc/{name}/stat"):
                assert parent_of(int(name)) != host.process.pid
        host.kill()
        killing.wait_free(host.account)


@pytest.mark.exact
def test_guardian_hasOnlyItsOwnDescriptors(killing: Killing) -> None:
    """The host has other files open; the guardian inherits none of them."""
    with (
        open("/etc/passwd", encoding="utf-8") as inherited,
        killing.playing(descriptors=[inherited.fileno()]) as host,
    ):
        assert os.path.exists(f"/proc/{host.process.pid}/fd/{inherited.fileno()}")
        folder = f"/proc/{host.guardian()}/fd"
        found = {int(name): os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
        assert set(found) <= {0, 1, 2, 4, 5}, found
        assert all(found[number] == "/dev/null" for number in (0, 1, 2)), found
        assert found[4].startswith("socket:"), found
        host.kill()
        killing.wait_free(host.account)


@pytest.mark.exact
def test_guardian_hasNoEnvironmentButWhatItNeeds(killing: Killing, tmp_path: Path) -> None:
    environment = {"LD_PRELOAD": "", "SSLKEYLOGFILE": str(tmp_path / "keys"), "TOKEN": "secret", "no_proxy": "*"}
    with killing.playing(environment=environment) as host:
        text = Path(f"/proc/{host.guardian()}/environ").read_bytes()
        names = {line.split(b"=")[0] for line in text.split(b"\0") if line}
        needed = (ROOT / "Sources/CPlatform/guardian.h").read_text(encoding="utf-8")
        assert all(f'"{name.decode()}="' in needed for name in names), names
        assert not names & {b"LD_PRELOAD", b"SSLKEYLOGFILE", b"TOKEN", b"PATH"}
        assert b"no_proxy" in names
        host.kill()
        killing.wait_free(host.account)


@pytest.mark.exact
def test_guardian_hasGivenUpItsRights(killing: Killing) -> None:
    with killing.playing() as host:
        process = host.guardian()
        # The host plays as soon as the guardian exists; the guardian gives up its rights a moment later.
        wait_until(lambda: status_of(process)["NoNewPrivs"] == "1", "the guardian may gain rights")
        wait_until(lambda: status_of(process).get("Seccomp", "2") == "2", "the guardian has no filter of system calls")
        host.kill()
        killing.wait_free(host.account)


def test_guardian_isSmall() -> None:
    size = guardian().stat().st_size
    print(f"usher-guardian: {size} bytes")
    assert size < 300_000


def test_area_cannotBeResized(killing: Killing) -> None:
    """The system refuses to change the size of the memory with the records. If a process could make it smaller, the
    guardian would read beyond its end."""
    with killing.playing() as host:
        folder = f"/proc/{host.process.pid}/fd"
        links = {name: os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
        areas = [name for name, target in links.items() if "usher-records" in target]
        assert len(areas) == 1, links
        fd = os.open(f"{folder}/{areas[0]}", os.O_RDWR)
        try:
            for size in (0, os.fstat(fd).st_size + 1):
                with pytest.raises(PermissionError):
                    os.ftruncate(fd, size)
        finally:
            os.close(fd)
        host.kill()
        killing.wait_free(host.account)


def test_area_isNeitherInherited_norDumped(killing: Killing) -> None:
    """The memory with the tokens is not in core dumps ("dd"), and children of fork() do not have it ("dc")."""
    with killing.playing() as host:
        parts = Path(f"/proc/{host.process.pid}/smaps").read_text(encoding="utf-8").split("VmFlags:")
        flags = [after.splitlines()[0].split() for before, after in pairwise(parts) if "usher-records" in before]
        assert len(flags) == 1 and {"dd", "dc"} <= set(flags[0]), flags
        host.kill()
        killing.wait_free(host.account)


def test_guardian_withDamagedRecords_endsWithoutHarm(killing: Killing) -> None:
    """A hostile process changes lengths, numbers and bytes, and makes the checksums agree. The guardian refuses the
    memory or ends as usual; no signal ends it."""
    seed = int(os.environ.get("USHER_KILL_SEED", time.time_ns() % 1_000_000))
    print(f"USHER_KILL_SEED={seed}")
    with killing.playing() as host:
        whole = Area.of_host(host.process.pid)
    assert whole.copy(whole.newest())[2] > 100 and whole.copy(whole.newest_update())[2] > 40
    assert whole.duplicate().run_guardian() == 0
    for index in range(40):
        area = whole.duplicate()
        area.expire_in(1000)
        area.damage(random.Random(f"{seed} {index}"))
        assert area.run_guardian() in (0, 2), f"{seed} {index}"


def test_guardian_withSizesWhoseSumOverflows_refusesTheMemory(killing: Killing) -> None:
    with killing.playing() as host:
        area = Area.of_host(host.process.pid)
    area.overflow()
    assert area.run_guardian() == 2


def test_guardian_readsAReplyWhoseFirstHeaderLineIsFolded_andTriesAgain(
    killing: Killing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server sends a reply whose first header line begins with a blank, as if it continued an earlier line (a folded
    line). After an earlier reply to the same handle, some versions of libcurl then write to freed memory. In this test,
    malloc overwrites all memory that the guardian frees (MALLOC_PERTURB_), so this fault would crash the guardian. The
    guardian must read the reply, a 503, and send the teardown again."""
    monkeypatch.setenv("MALLOC_PERTURB_", "85")
    with killing.playing() as host:
        area = Area.of_host(host.process.pid)
    busy, length = b"HTTP/1.1 503 Busy\r\n", b"Content-Length: 0\r\n\r\n"
    with RawServer(
        busy + b"A: 1\r\n" + length, busy + b" b: 1\r\n" + length, b"HTTP/1.1 200 OK\r\n" + length
    ) as server:
        area.send_to(urlsplit(server.url).port or 0)
        assert area.run_guardian() == 0
        assert len(server.requests) == 3


def test_sandbox_refusesWhatTheGuardianNeedsNot(tmp_path: Path) -> None:
    program = tmp_path / "sandbox"
    sources = [str(HERE / "sandbox.c"), str(ROOT / "guardian" / "sandbox.c")]
    command = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *sources, "-o", str(program)]
    subprocess.run([*command, "-pthread"], check=True, timeout=120)
    ended = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout


# ---- options ---------------------------------------------------------------------------------------------------------


def test_guardianThatIsMissing_required_isRefusedWithTheReason(tmp_path: Path) -> None:
    missing = str(tmp_path / "usher-guardian")
    with pytest.raises(usher.ResourceError, match=f"guardian: {missing}: No such file or directory"):
        usher.Context(guardian="required", guardian_path=missing)


def test_guardianThatIsMissing_ifPossible_isAWarning(tmp_path: Path) -> None:
    lines: list[str] = []
    missing = str(tmp_path / "usher-guardian")
    with usher.Context(guardian="if_possible", guardian_path=missing, log=lambda level, line: lines.append(line)):
        pass
    assert [line for line in lines if "guardian: " in line] == [f"guardian: {missing}: No such file or directory"]


def test_guardianThatFails_isRefusedWithItsExitCode() -> None:
    with pytest.raises(usher.ResourceError, match="/bin/false has failed; exit code 1"):
        usher.Context(guardian="required", guardian_path="/bin/false")


def test_guardianPath_ofAnotherProgram_isRefused() -> None:
    """The program ends without an error, but leaves no process."""
    with pytest.raises(usher.ResourceError, match="/bin/true has ended: it is not usher-guardian"):
        usher.Context(guardian="required", guardian_path="/bin/true")


def test_guardianThatNeverStarts_isRefusedAfterTenSeconds(tmp_path: Path) -> None:
    """The first process of a guardian ends when the guardian runs. This program does not end, so the library kills
    it and its child."""
    program = script(tmp_path, f"sleep 600 & echo $$ $! >{tmp_path}/processes; wait")
    began = time.monotonic()
    with pytest.raises(usher.ResourceError, match="it did not start within ten seconds"):
        usher.Context(guardian="required", guardian_path=program)
    assert 9.9 < time.monotonic() - began < 20 * PATIENCE
    for process in map(int, (tmp_path / "processes").read_text().split()):
        wait_until(lambda process=process: not Path(f"/proc/{process}").exists(), "the program still runs")


def test_context_whoseNextGuardianHangs_closesInTime(tmp_path: Path) -> None:
    """An update puts a program that hangs in the place of the guardian's, and the guardian is killed. While the next
    guardian hangs, the context closes at once."""
    program = tmp_path / "usher-guardian"
    program.symlink_to(Path(os.environ["USHER_LIBRARY"]).resolve().with_name("usher-guardian"))
    before = guardians()
    context = usher.Context(guardian="required", guardian_path=program)
    (first,) = guardians() - before
    program.unlink()
    script(tmp_path, f"echo $$ >{tmp_path}/process; exec sleep 600")
    os.kill(first, signal.SIGKILL)
    wait_until((tmp_path / "process").exists, "no second guardian")
    began = time.monotonic()
    context.close()
    assert time.monotonic() - began < 2 * PATIENCE


def test_guardianPath_relative_isRefused() -> None:
    with pytest.raises(usher.InvalidArgumentError, match="guardian_path: 'usher-guardian': not an absolute path"):
        usher.Context(guardian="required", guardian_path="usher-guardian")


def test_contexts_withAGuardian_leaveNothingOpen() -> None:
    """Each context closes its descriptors and ends its guardian."""
    before = len(os.listdir("/proc/self/fd")), guardians()
    for _ in range(3):
        with usher.Context(guardian="required"):
            assert len(guardians()) == len(before[1]) + 1
        wait_until(lambda: guardians() == before[1], "a guardian is left")
    assert len(os.listdir("/proc/self/fd")) == before[0]


# ---- the end of a program (close_at_exit_ms) -------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["returns", "exits"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_program_thatEndsWithASession_givesItBack(request: pytest.FixtureRequest, ends: str, scheme: str) -> None:
    killing: Killing = request.getfixturevalue("secure" if scheme == "https" else "killing")
    with killing.playing(ends=ends, guardian=0, exit_ms=10000) as host:
        host.proceed()
        assert host.process.wait(20) == 5
        assert killing.held(host.account) == 0


@pytest.mark.parametrize("ends", ["returns", "exits"])
def test_programThatInitialisedOpenSSLFirst_givesItsSessionBack(secure: Killing, ends: str) -> None:
    """The host initialises OpenSSL before the library does, so OpenSSL frees its memory in an exit handler. The
    library's exit handler must run before OpenSSL's. The host also has two exit handlers that use OpenSSL: one runs
    before the library's handler, and one after it."""
    with secure.playing(ends=ends, guardian=0, exit_ms=10000, openssl=1) as host:
        host.proceed()
        assert host.process.wait(20) == 5
        assert secure.held(host.account) == 0
        host.rest()
        assert [line for line in host.lines if "handler" in line] == ["first handler 1", "last handler 1"]


def test_program_thatEndsWithoutTheOption_leavesItsSession(killing: Killing) -> None:
    with killing.playing(ends="returns", guardian=0) as host:
        host.proceed()
        assert host.process.wait(20) == 5
        assert killing.held(host.account) == 1


def test_program_whoseServerHangs_endsWhenItsTimeIsOver_andTheGuardianDoesTheRest(killing: Killing) -> None:
    with killing.playing(ends="returns", exit_ms=300) as host:
        killing.headend.faults.add("teardown", Fault.delay(30_000))
        begun = time.monotonic()
        host.proceed()
        assert host.process.wait(20) == 5
        assert 0.3 <= time.monotonic() - begun < 5 * PATIENCE, "the option is 300 ms"
        killing.wait_free(host.account)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
