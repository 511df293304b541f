"""Tests the hosts that play HLS with `skd:` keys, in C and Python: the resource loader gets each key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import demo_stage

if TYPE_CHECKING:
    from run import Examples

MEDIA = demo_stage.ROOT / "Tests" / "media" / "hls"


def tell(examples: Examples) -> None:
    """The pictures that both hosts decode have the hash in media.json. Each host requests each key once, when the
    playlist needs the key. If the server refuses a key, the host stops."""
    folder = examples.folder / "loader"
    folder.mkdir()
    contents = json.loads((MEDIA / "media.json").read_text())["contents"]
    own = ["--media", str(MEDIA / "media.json")]
    headend = demo_stage.HeadEnd(
        examples.python, folder, examples.stage.environment, examples.kid, examples.media["key"], *own
    )
    examples.stage.processes.append(headend.process)
    for who in ("resource_loader.c", "resource_loader.py"):
        for content in contents:
            for name in ("video", "rotating"):
                if name in content:
                    played(examples, headend, who, content, name)
        refused(examples, headend, who, contents[0])
    examples.claim(not headend.sessions(), "resource_loader: no session was set up", headend.sessions())


def command(examples: Examples, headend: demo_stage.HeadEnd, who: str, playlist: str, server: str = "ckc") -> list[str]:
    program = [str(examples.build / "usher-resource-loader")]
    if who.endswith(".py"):
        program = [examples.python, str(demo_stage.ROOT / "examples" / "python" / "resource_loader.py")]
    services = headend.license_url.partition("/ckls/")[0] + "/fps"
    return [*program, str(MEDIA / playlist), f"{services}/{server}", f"{services}/certificate"]


def played(examples: Examples, headend: demo_stage.HeadEnd, who: str, content: dict[str, Any], name: str) -> None:
    seen = len(headend.journal())
    code, output = examples.run(
        f"{who}-{name}", command(examples, headend, who, content[name]), {"PYTHONUNBUFFERED": "1"}
    )
    wanted = f"{content['frames']} frames, sha256 {content['frames_sha256']}"
    shown = code == 0 and wanted in output.splitlines()
    examples.claim(shown, f"{who} decoded the pictures of {content[name]} as recorded", f"{wanted}\n{code}\n{output}")
    journal = headend.journal()[seen:]
    routes = ["certificate", "ckc"] + ["ckc"] * (name == "rotating")
    examples.claim(
        [entry["route"] for entry in journal] == routes,
        f"{who}: it requested certificate and keys of {content[name]} once",
        journal,
    )
    examples.claim(
        {entry["status"] for entry in journal} == {200}, f"{who}: the key server granted each request", journal
    )


def refused(examples: Examples, headend: demo_stage.HeadEnd, who: str, content: dict[str, Any]) -> None:
    headend.ask(
        "faults", {"route": "ckc", "fault": {"kind": "error", "code": 4000, "message": "not granted", "status": 403}}
    )
    code, output = examples.run(
        f"{who}-refused", command(examples, headend, who, content["video"]), {"PYTHONUNBUFFERED": "1"}
    )
    shown = [line for line in output.splitlines() if " frames, sha256 " in line and not line.startswith("0 ")]
    told = code == 1 and "not granted" in output
    examples.claim(
        told and not shown,
        f"{who}: if the key server refuses, it prints the reason and shows nothing",
        f"{code}\n{output}",
    )
