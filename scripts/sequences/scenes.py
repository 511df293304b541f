"""The scenes of the pictures. Each plays against the reference head-end, with the library in USHER_LIBRARY."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import usher
from pytest_usher.stage import KEY, KID
from usher.testing.headend import Fault, HeadEnd

from .messages import GUARDIAN, LIBRARY, LICENCES, PLAYER, SSM, Host, Scene, end

PERIOD_S = 60
LIMIT_S = 30.0
"""The longest wait for the teardown that the guardian sends."""


def headend(limit: int = 1, **settings: Any) -> HeadEnd:
    """Returns a head-end on a manual clock, whose accounts may play `limit` streams."""
    return HeadEnd(**{"clock": "manual", "token_rotation": "strict", "period_s": PERIOD_S, "limit": limit, **settings})


def advance(scene: Scene, host: Host, seconds: int) -> None:
    scene.note("time", f"{seconds} s later")
    host.stage.advance(seconds * 1000)
    host.show()


# ---- scenes ----------------------------------------------------------------------------------------------------------


def playback(server: HeadEnd) -> Scene:
    """Plays with SSM v1, from play to close, with one heartbeat. Returns the scene."""
    scene = Scene(server)
    host = Host(scene)
    item = host.play()
    host.license(item)
    advance(scene, host, PERIOD_S)
    host.close(item)
    end(host)
    return scene


def playback_v2(server: HeadEnd) -> Scene:
    """Plays with SSP V2, where the licence request opens the session. Returns the scene."""
    scene = Scene(server)
    host = Host(scene)
    delegate = usher.SSPV2Delegate(
        host.stage.context,
        license_url=server.license_url("clearkey", api="v2"),
        ssm_url=server.ssm_url,
        jitter_permille=usher.OFF,
    )
    item = host.play(delegate=delegate)
    host.license(item)
    advance(scene, host, PERIOD_S)
    host.close(item, usher.CloseMode.TEARDOWN)
    end(host)
    return scene


def zap(server: HeadEnd) -> Scene:
    """The player starts the next item; the library tears the earlier session down first. Returns the scene."""
    scene = Scene(server)
    host = Host(scene)
    host.license(host.play())
    scene.note("time", "the viewer zaps")
    host.license(host.play())
    scene.steps = scene.steps[_index(scene, "the viewer zaps") :]
    end(host)
    return scene


def zap_without_waiting(server: HeadEnd) -> Scene:
    """Plays a zap with the option `zap_without_waiting`, while the server takes a long time for the teardown. Returns
    the scene."""
    scene = Scene(server)
    host = Host(scene)
    delegate = host.stage.delegate(zap_without_waiting=True)
    host.license(host.play(delegate=delegate))
    scene.note("time", "the viewer zaps")
    server.faults.add("teardown", Fault.stall("after"))
    host.license(host.play(delegate=delegate))
    server.release()
    host.show()
    scene.steps = scene.steps[_index(scene, "the viewer zaps") :]
    end(host)
    return scene


def denial(server: HeadEnd) -> Scene:
    """The account has one stream, and a second screen wants to play. Returns the scene."""
    first, second = ("first screen", "libusher, first screen"), ("second screen", "libusher, second screen")
    scene = Scene(server, (*first, SSM, *reversed(second)))
    living_room, kitchen = Host(scene, *first), Host(scene, *second)
    item = living_room.play()
    refused = kitchen.play()
    kitchen.license(refused)
    scene.note("time", "the first screen stops")
    living_room.close(item)
    kitchen.play()
    end(living_room, kitchen)
    return scene


def crash(server: HeadEnd) -> Scene:
    """The process of the player is killed; its guardian tears the session down, and the next start plays. Returns the
    scene."""
    scene = Scene(server, (PLAYER, LIBRARY, GUARDIAN, SSM, LICENCES))
    account = "account-1"
    words = [server.license_url("clearkey"), server.ssm_url, server.content_token(account)]
    server.add_key(KID, KEY)
    command = [sys.executable, "-m", "sequences.killed", *words]
    folder = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        lines = []
        for line in process.stdout or ():
            if line == "plays\n":
                break
            lines.append(json.loads(line))
        process.kill()
    if process.returncode != -9:
        raise ValueError(f"the host ended before it was killed, with {process.returncode}")
    scene.add(lines)
    scene.note("death", "SIGKILL")
    server.journal.wait_for(1, LIMIT_S, route="teardown", answered=True)
    scene.add_unasked(GUARDIAN)
    scene.note("birth", "next start")
    host = Host(scene)
    host.play(account=account)
    end(host)
    return scene


def _index(scene: Scene, text: str) -> int:
    return next(number for number, step in enumerate(scene.steps) if step.text == text)


SCENES: dict[str, tuple[str, Callable[[HeadEnd], Scene], dict[str, Any]]] = {
    "playback": ("A playback with SSM v1, from start to stop", playback, {}),
    "playback-v2": ("A playback with SSP V2, from start to stop", playback_v2, {}),
    "zap": ("A zap: teardown, then set-up", zap, {}),
    "zap-without-waiting": ("A zap that does not wait for the teardown", zap_without_waiting, {"limit": 2}),
    "denial": ("A second screen is refused, and plays when the first has stopped", denial, {}),
    "crash": ("The player is killed, and its guardian gives the slot back", crash, {}),
}
"""The title, the function and the settings of the head-end of each picture, by its name."""


def play(name: str) -> Scene:
    """Plays a scene."""
    _, scene, settings = SCENES[name]
    with headend(**settings) as server:
        return scene(server)
