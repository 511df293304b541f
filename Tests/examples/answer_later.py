"""Tests the examples in C, C++ and Python that answer questions later. The licence needs a renewal each second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import demo_stage

if TYPE_CHECKING:
    from run import Examples

SECONDS = 3
FRAMES = 25 * SECONDS


def tell(examples: Examples) -> None:
    """The pictures that the three hosts decode equal those of the clear clip. Renewals keep each session alive. If the
    operator kills a session, its host stops."""
    folder = examples.folder / "renewed"
    media = demo_stage.make_media(folder, "--seconds", str(SECONDS))
    headend = demo_stage.HeadEnd(
        examples.python, folder, examples.stage.environment, examples.kid, media["key"], "--enforced", "clearkey"
    )
    examples.stage.processes.append(headend.process)
    clip = folder / media["encrypted"]
    hosts = {
        who: command(examples, headend, who, clip) for who in ("answer_later.c", "answer_later.cpp", "answer_later.py")
    }
    pictures = {who: played(examples, headend, who, host) for who, host in hosts.items()}
    output = examples.run("clear", [examples.stage.player, "--clear", str(folder / media["clear"])])[1]
    clear = next((line.split()[1] for line in output.splitlines() if line.split()[:1] == ["sha256"]), "")
    wanted = dict.fromkeys(hosts, f"{FRAMES} frames, sha256 {clear}")
    examples.claim(
        clear and pictures == wanted,
        f"C, C++ and Python decoded the {FRAMES} pictures of the clear clip",
        f"{pictures}\nclear: {output}",
    )
    for who in ("answer_later.c", "answer_later.cpp"):  # stories/test_examples.py kills the Python example's session
        killed(examples, headend, who, command(examples, headend, who, clip))
    violations = headend.ask("violations")["violations"]
    examples.claim(not violations, "answer_later: the head-end found no protocol violation", violations)


def command(examples: Examples, headend: demo_stage.HeadEnd, who: str, clip: Path) -> list[str]:
    program = {
        "answer_later.c": [str(examples.build / "usher-answer-later")],
        "answer_later.cpp": [str(examples.build_cpp / "usher-answer-later")],
        "answer_later.py": [examples.python, str(demo_stage.ROOT / "examples" / "python" / "answer_later.py")],
    }[who]
    return [*program, str(clip), headend.license_url, headend.ssm_url, headend.token(), examples.kid]


def played(examples: Examples, headend: demo_stage.HeadEnd, who: str, host: list[str]) -> str:
    """Plays the clip to its end. Returns the line of the output that describes the pictures."""
    earlier = {session["id"] for session in headend.sessions()}
    code, output = examples.run(who, host, {"PYTHONUNBUFFERED": "1"})
    examples.claim(code == 0, f"{who} plays the encrypted clip to its end", f"exit code {code}\n{output}")
    answered_later(examples, who, output)
    table = [session for session in headend.sessions() if session["id"] not in earlier]
    own = {session["id"] for session in table}
    renewed(examples, who, table, [entry for entry in headend.journal() if entry["session"] in own])
    return pictures_of(output)


def pictures_of(output: str) -> str:
    return next(
        (line for line in output.splitlines() if " frames, sha256 " in line), f"no line about pictures:\n{output}"
    )


def answered_later(examples: Examples, who: str, output: str) -> None:
    """Checks the output: "TokenRequest: answered later" from Python, "token: answered later, ..." from C and C++."""
    good = [
        line.lower()
        for line in output.splitlines()
        if "answered later" in line and "INVALID" not in line and "too late" not in line
    ]
    tokens, payloads = (sum(line.startswith(what) for line in good) for what in ("token", "payload"))
    examples.claim(
        tokens == 1 and payloads >= 2, f"{who}: it answered the token and the payloads later, in time", output
    )


def renewed(examples: Examples, who: str, table: list[dict[str, Any]], journal: list[dict[str, Any]]) -> None:
    """Checks the journal: one session was set up, got a licence and renewals until the end, and was torn down. The
    head-end refused no request."""
    routes = [entry["route"] for entry in journal]
    renewals = routes.count("license-renewal")
    order = ["setup", "license", *["license-renewal"] * renewals, "teardown"]
    examples.claim(
        renewals >= 2 and routes == order, f"{who}: set-up, licence, renewals, teardown arrived, in this order", routes
    )
    examples.claim(
        {entry["status"] for entry in journal} == {200}, f"{who}: the head-end granted each request", journal
    )
    found = [(session["state"], session["licenses"], session["beats"]) for session in table]
    examples.claim(
        found == [("torn_down", 1, renewals)],
        f"{who}: its one session in the table: licensed once, with as many renewals, torn down",
        table,
    )


def killed(examples: Examples, headend: demo_stage.HeadEnd, who: str, host: list[str]) -> None:
    """Plays the clip. In the middle the operator kills the session; then the host must stop."""
    process = examples.start(f"killed-{who}", host)
    demo_stage.wait_until(
        lambda: [session for session in headend.sessions() if session["state"] == "active" and session["beats"]],
        30,
        "a first renewal",
    )
    headend.ask("kill", {"account": demo_stage.ACCOUNT})
    code = process.wait(30)
    frames = pictures_of(process.output).split()[0]
    examples.claim(
        code == 1 and frames.isdigit() and int(frames) < FRAMES,
        f"{who}: it stops when the operator kills its session",
        f"{code}\n{process.output}",
    )
    examples.claim(
        not [session for session in headend.sessions() if session["state"] == "active"],
        f"{who}: it holds no session afterwards",
        headend.sessions(),
    )
