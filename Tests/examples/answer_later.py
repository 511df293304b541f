"""The hosts that answer later, in C, C++ and Python: a short clip whose licence must be renewed every second. For run.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import demo

if TYPE_CHECKING:
    from run import Examples

SECONDS = 3
FRAMES = 25 * SECONDS


def tell(examples: Examples) -> None:
    """All three see what the clear clip shows; the head-end sees one session each, kept alive by renewals; a killed one stops."""
    folder = examples.folder / "renewed"
    media = demo.make_media(folder, "--seconds", str(SECONDS))
    headend = demo.HeadEnd(
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
    for who in ("answer_later.c", "answer_later.cpp"):  # Python's: tests/test_examples.py
        killed(examples, headend, who, command(examples, headend, who, clip))
    violations = headend.ask("violations")["violations"]
    examples.claim(not violations, "answer_later: the head-end noticed no mistake", violations)


def command(examples: Examples, headend: demo.HeadEnd, who: str, clip: Path) -> list[str]:
    program = {
        "answer_later.c": [str(examples.build / "usher-answer-later")],
        "answer_later.cpp": [str(examples.build_cpp / "usher-answer-later")],
        "answer_later.py": [examples.python, str(demo.ROOT / "examples" / "python" / "answer_later.py")],
    }[who]
    kid = examples.kid if who.endswith(".py") else examples.kid_base64url
    return [*program, str(clip), headend.license_url, headend.ssm_url, headend.token(), kid]


def played(examples: Examples, headend: demo.HeadEnd, who: str, host: list[str]) -> str:
    """Plays to the end; the line about its pictures."""
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
    """Python says "TokenRequest: answered later"; C and C++ "token: answered later, ..." and what came of it."""
    good = [
        line.lower()
        for line in output.splitlines()
        if "answered later" in line and "INVALID" not in line and "too late" not in line
    ]
    tokens, payloads = (sum(line.startswith(what) for line in good) for what in ("token", "payload"))
    examples.claim(
        tokens == 1 and payloads >= 2, f"{who}: one token and the payloads were answered later, in time", output
    )


def renewed(examples: Examples, who: str, table: list[dict[str, Any]], journal: list[dict[str, Any]]) -> None:
    """The head-end's side: one session, set up, licensed, renewed as long as it lasted, torn down; nothing refused."""
    routes = [entry["route"] for entry in journal]
    renewals = routes.count("license-renewal")
    order = ["setup", "license", *["license-renewal"] * renewals, "teardown"]
    examples.claim(
        renewals >= 2 and routes == order, f"{who}: set-up, licence, renewals, teardown arrived, in this order", routes
    )
    examples.claim({entry["status"] for entry in journal} == {200}, f"{who}: each of them was granted", journal)
    found = [(session["state"], session["licenses"], session["beats"]) for session in table]
    examples.claim(
        found == [("torn_down", 1, renewals)],
        f"{who}: the session table has one: licensed once, renewed as often, torn down",
        table,
    )


def killed(examples: Examples, headend: demo.HeadEnd, who: str, host: list[str]) -> None:
    """The operator ends the session in the middle of the clip."""
    process = examples.start(f"killed-{who}", host)
    demo.wait_until(
        lambda: [session for session in headend.sessions() if session["state"] == "active" and session["beats"]],
        30,
        "a first renewal",
    )
    headend.ask("kill", {"account": demo.ACCOUNT})
    code = process.wait(30)
    frames = pictures_of(process.output).split()[0]
    examples.claim(
        code == 1 and frames.isdigit() and int(frames) < FRAMES,
        f"{who}: killed by the operator, it stops",
        f"{code}\n{process.output}",
    )
    examples.claim(
        not [session for session in headend.sessions() if session["state"] == "active"],
        f"{who}: and holds nothing",
        headend.sessions(),
    )
