"""Runs examples/python/answer_later.py in real time: it renews the licence, and decodes the pictures of the clear
clip."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from usher.testing.headend import HeadEnd

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "python" / "answer_later.py"
MEDIA = ROOT / "scripts" / "make-media.sh"
pytestmark = [
    pytest.mark.skipif(not EXAMPLE.is_file(), reason="not in the source tree: no examples"),
    pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg to make the clip with"),
]


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("media")
    subprocess.run([str(MEDIA), str(folder), "--seconds", "3"], check=True, capture_output=True, timeout=60)
    found: dict[str, Any] = json.loads((folder / "media.json").read_text())
    return {**found, "clear": str(folder / found["clear"]), "encrypted": str(folder / found["encrypted"])}


def pictures(clip: str) -> str:
    """Decodes the clip and returns the number and the hash of its frames, in the form of the example's output."""
    av = pytest.importorskip("av")
    import hashlib

    digest, count = hashlib.sha256(), 0
    with av.open(clip) as container:
        for frame in container.decode(video=0):
            for plane in frame.planes:
                data = memoryview(plane)
                for row in range(plane.height):
                    digest.update(data[row * plane.line_size : row * plane.line_size + plane.width])
            count += 1
    return f"{count} frames, sha256 {digest.hexdigest()}"


def play(headend: HeadEnd, media: dict[str, Any], clip: str) -> subprocess.CompletedProcess[str]:
    headend.add_key(bytes.fromhex(media["kid"]), bytes.fromhex(media["key"]))
    arguments = [clip, headend.license_url("clearkey"), headend.ssm_url, headend.content_token(), media["kid"]]
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_answerLater_playsTheClip_withRenewalsAnsweredFromAnotherThread(
    lib: Any, headend_factory: Callable[..., HeadEnd], media: dict[str, Any]
) -> None:
    wanted = pictures(media["clear"])
    headend = headend_factory(clock="system", period_s=1, enforced={"clearkey"}, grace=3.0)
    done = play(headend, media, media["encrypted"])
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert wanted in lines
    assert "TokenRequest: answered later" in lines and "PayloadRequest: answered later" in lines
    assert lines[-1].endswith("PLAYBACK_CLOSED ")
    routes = headend.journal.routes()
    assert routes[:2] == ["setup", "license"] and routes[-1] == "teardown"
    assert routes[2:-1] and set(routes[2:-1]) == {"license-renewal"}
    assert not headend.sessions.active()


def test_answerLater_killedByTheOperator_stops(
    lib: Any, headend_factory: Callable[..., HeadEnd], media: dict[str, Any]
) -> None:
    pytest.importorskip("av")
    headend = headend_factory(clock="system", period_s=0.5, grace=3.0)
    killing = threading.Thread(
        target=lambda: (
            headend.journal.wait_for(1, route="heartbeat", answered=True),
            headend.kill_account("account-1"),
        )
    )
    killing.start()
    done = play(headend, media, media["encrypted"])
    killing.join(20)
    assert done.returncode == 0, done.stderr
    assert "HEARTBEAT_ERROR" in done.stdout
    frames = int(next(line for line in done.stdout.splitlines() if " frames, " in line).split()[0])
    assert 0 < frames < 75, "the example must stop before the end of the clip"
