"""Tests one example for each licence delegate, in C and Python: each example plays the encrypted clip and must decode
it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import demo_stage
from backend import Backend

if TYPE_CHECKING:
    from run import Examples

SECONDS = 3
PERIOD_S = 1.0
FRAMES = 25 * SECONDS
ACCOUNT = "jones-family"


class Stage:
    """A head-end with two streams, the keys of clip and preview, and the paths and addresses that the examples need."""

    def __init__(self, examples: Examples) -> None:
        self.examples = examples
        folder = examples.folder / "delegates"
        self.media = demo_stage.make_media(folder, "--seconds", str(SECONDS))
        preview = self.media["preview"]
        more = [
            "--journal-tokens",
            "--limit",
            "2",
            "--period",
            str(PERIOD_S),
            "--key",
            f"{preview['kid']}:{preview['key']}:{preview['content_id']}",
        ]
        self.headend = demo_stage.HeadEnd(
            examples.python, folder, examples.stage.environment, self.media["kid"], self.media["key"], *more
        )
        examples.stage.processes.append(self.headend.process)
        self.clip, self.preview = (str(folder / item["encrypted"]) for item in (self.media, preview))
        self.clip_hash, self.preview_hash = (self.clear_hash(folder / item["clear"]) for item in (self.media, preview))

    def clear_hash(self, file: Path) -> str:
        """Returns the hash of the pictures of a clear file, as usher-player computes it."""
        output = self.examples.run(f"clear-{file.stem}", [self.examples.stage.player, "--clear", str(file)])[1]
        return next(
            (line.split()[1] for line in output.splitlines() if line.split()[:1] == ["sha256"]),
            f"no hash of {file.name}: {output}",
        )

    def token(self, content_id: str, **more: Any) -> str:
        return str(self.headend.ask("token", {"account": ACCOUNT, "content_id": content_id, **more})["token"])

    def play(
        self, who: str, *arguments: str, code_wanted: int = 0
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
        """Plays the clip to its end. Returns the new journal entries, the new sessions and the output of the
        program."""
        seen = (
            {entry["number"] for entry in self.headend.journal()},
            {session["id"] for session in self.headend.sessions()},
        )
        code, output = self.examples.run(who, [*program(self.examples, who), *arguments], {"PYTHONUNBUFFERED": "1"})
        self.examples.claim(code == code_wanted, f"{who} ends with {code_wanted}", f"exit code {code}\n{output}")
        journal = [entry for entry in self.headend.journal() if entry["number"] not in seen[0]]
        table = [session for session in self.headend.sessions() if session["id"] not in seen[1]]
        return journal, table, output

    def claim_picture(self, who: str, output: str) -> None:
        self.examples.claim(
            f"{FRAMES} frames, sha256 {self.clip_hash}" in output.splitlines(),
            f"{who} decoded the pictures of the clear clip",
            output,
        )


def program(examples: Examples, who: str) -> list[str]:
    name, _, language = who.partition(".")
    if language == "py":
        return [examples.python, str(demo_stage.ROOT / "examples" / "python" / who)]
    folder = examples.build_cpp if language == "cpp" else examples.build
    return [str(folder / f"usher-{name.replace('_', '-')}")]


def steps(journal: list[dict[str, Any]]) -> list[str]:
    """Returns the routes of the requests; consecutive keep-alives count as one."""
    routes = [entry["route"] for entry in journal]
    return [route for index, route in enumerate(routes) if index == 0 or route != routes[index - 1]]


def header(entry: dict[str, Any], name: str) -> str:
    return next((value for key, value in entry["headers"] if key.lower() == name.lower()), "")


def tell(examples: Examples) -> None:
    stage = Stage(examples)
    for language in ("c", "py"):
        for story in (default, common, ssp, ssp_v2, multi_instance, customer):
            story(stage, f"{story.__name__}.{language}")
    multi_instance(stage, "multi_instance.cpp")
    loaded(stage, "loaded.c")
    examples.claim(
        not stage.headend.ask("sessions?state=active")["active"],
        "delegates: no session is held afterwards",
        stage.headend.sessions(),
    )
    violations = stage.headend.ask("violations")["violations"]
    examples.claim(not violations, "delegates: the head-end found no protocol violation", violations)


def default(stage: Stage, who: str) -> None:
    token = stage.token("clip", session_control=False)
    journal, table, output = stage.play(who, stage.clip, stage.headend.license_url, token, stage.media["kid"])
    stage.claim_picture(who, output)
    stage.examples.claim(
        steps(journal) == ["license"] and not table, f"{who}: one licence, no session", (steps(journal), table)
    )
    sent = [header(entry, "nv-authorizations") for entry in journal]
    stage.examples.claim(sent == [token], f"{who}: the request had the header that the host set", sent)


def common(stage: Stage, who: str) -> None:
    token = stage.token("clip", session_control=False)
    journal, table, output = stage.play(
        who, stage.clip, stage.headend.license_url, token, stage.media["kid"], "living-room"
    )
    stage.claim_picture(who, output)
    stage.examples.claim(
        steps(journal) == ["license"] and not table, f"{who}: one licence, no session", (steps(journal), table)
    )
    sent = [(header(entry, "nv-authorizations"), header(entry, "X-Device"), entry["query"]) for entry in journal]
    stage.examples.claim(
        sent == [(token, "living-room", [["device", "living-room"]])],
        f"{who}: the request had the headers and the URL of the hooks",
        sent,
    )


def ssp(stage: Stage, who: str) -> None:
    places = [stage.headend.license_url, stage.headend.ssm_url, stage.token("clip"), stage.media["kid"]]
    journal, table, output = stage.play(who, stage.clip, *places)
    stage.claim_picture(who, output)
    kept_alive(stage, who, journal, table, ["setup", "license", "heartbeat", "teardown"], "setup")


def loaded(stage: Stage, who: str) -> None:
    """Plays with libusher loaded by dlopen(). The program itself needs no libusher."""
    needed = subprocess.run(["readelf", "-d", *program(stage.examples, who)], capture_output=True, text=True).stdout
    stage.examples.claim("NEEDED" in needed and "libusher" not in needed, f"{who} is not linked with libusher", needed)
    places = [stage.headend.license_url, stage.headend.ssm_url, stage.token("clip"), stage.media["kid"]]
    journal, table, output = stage.play(who, str(stage.examples.library), stage.clip, *places)
    stage.claim_picture(who, output)
    kept_alive(stage, who, journal, table, ["setup", "license", "heartbeat", "teardown"], "setup")
    stage.play(who, "/no/libusher.so.0", stage.clip, *places, code_wanted=1)


def ssp_v2(stage: Stage, who: str) -> None:
    places = [stage.headend.license_url_v2, stage.headend.ssm_url, stage.token("clip"), stage.media["kid"]]
    journal, table, output = stage.play(who, stage.clip, *places)
    stage.claim_picture(who, output)
    kept_alive(stage, who, journal, table, ["license", "heartbeat", "teardown"], "license")


def kept_alive(
    stage: Stage,
    who: str,
    journal: list[dict[str, Any]],
    table: list[dict[str, Any]],
    wanted: list[str],
    created_by: str,
) -> None:
    claim, routes = stage.examples.claim, [entry["route"] for entry in journal]
    beats = routes.count("heartbeat")
    claim(steps(journal) == wanted and beats >= 2, f"{who}: {', '.join(wanted)} arrived, in this order", routes)
    claim({entry["status"] for entry in journal} == {200}, f"{who}: the head-end granted each request", journal)
    found = [(session["state"], session["created_by"], session["licenses"], session["beats"]) for session in table]
    claim(
        found == [("torn_down", created_by, 1, beats)],
        f"{who}: the session table has one session: licensed once, kept alive, torn down",
        table,
    )


def multi_instance(stage: Stage, who: str) -> None:
    """Plays two streams at the same time, as many as the account may play. Each stream has a separate token, key and
    session."""
    streams = []
    for file, item in ((stage.clip, stage.media), (stage.preview, stage.media["preview"])):
        streams += [file, item["content_id"], stage.token(item["content_id"]), item["kid"]]
    journal, table, output = stage.play(who, stage.headend.license_url, stage.headend.ssm_url, *streams)
    pictures = {line for line in output.splitlines() if " frames, sha256 " in line}
    wanted = {f"{FRAMES} frames, sha256 {stage.clip_hash}", f"{FRAMES} frames, sha256 {stage.preview_hash}"}
    stage.examples.claim(
        pictures == wanted and len(wanted) == 2, f"{who} decoded the pictures of clip and preview", output
    )
    for content_id in ("clip", "preview"):
        own = [session for session in table if session["content_ids"] == [content_id]]
        stage.examples.claim(len(own) == 1, f"{who}: one session for {content_id}, under its own token", table)
        requests = [entry for entry in journal if entry["session"] in {session["id"] for session in own}]
        kept_alive(stage, f"{who}, {content_id}", requests, own, ["setup", "license", "heartbeat", "teardown"], "setup")
    routes = [entry["route"] for entry in journal]
    together = max(index for index, route in enumerate(routes) if route == "setup") < routes.index("teardown")
    stage.examples.claim(len(table) == 2 and together, f"{who}: it held both sessions at the same time", routes)


def customer(stage: Stage, who: str) -> None:
    """Plays with the operator's back end (backend.py): with heartbeats, with renewals, with a refusal, and with a
    session that the operator kills. The C example is a plug-in."""
    claim, keys = stage.examples.claim, {bytes.fromhex(stage.media["kid"]): bytes.fromhex(stage.media["key"])}
    clip = [str(stage.examples.build / "usher-portal.so")] * (not who.endswith(".py")) + [stage.clip]
    for renewals in (False, True):
        how = "renew" if renewals else "alive"
        with Backend(keys, renewals, PERIOD_S) as backend:
            journal, table, output = stage.play(who, *clip, backend.url, stage.media["kid"])
            stage.claim_picture(who, output)
            claim(not journal and not table, f"{who}: no request reached the head-end", journal)
            whats = backend.whats()
            wanted = ["start", *[how] * (len(whats) - 2), "stop"]
            claim(whats == wanted and len(whats) >= 4, f"{who}: the back end saw start, {how} each period, stop", whats)
            claim(
                backend.sessions == {"session-1": "stopped"},
                f"{who}: one session, stopped at the end",
                backend.sessions,
            )
            claim(
                {status for _, _, status in backend.journal} == {200},
                f"{who}: the back end granted each request",
                backend.journal,
            )
    with Backend(keys, renewals=False, limit=0) as backend:
        output = stage.play(who, *clip, backend.url, stage.media["kid"], code_wanted=1)[2]
        refused = ("as many streams as it may" in output or "1007" in output) and backend.whats() == ["start"]
        claim(refused, f"{who}: it reports the refusal at the limit", (output, backend.journal))
    with Backend(keys, False, PERIOD_S) as backend:
        process = stage.examples.start(
            f"killed-{who}", [*program(stage.examples, who), *clip, backend.url, stage.media["kid"]]
        )
        demo_stage.wait_until(lambda: "alive" in backend.whats(), 30, "a first heartbeat")
        backend.kill()
        code = process.wait(30)
        frames = [line.split()[0] for line in process.output.splitlines() if " frames, sha256 " in line]
        stopped = code == 1 and len(frames) == 1 and int(frames[0]) < FRAMES
        claim(
            stopped and not backend.held(),
            f"{who}: it stops when the back end ends its session",
            f"{code}\n{process.output}",
        )
