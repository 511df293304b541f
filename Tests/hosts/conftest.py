"""Fixtures for tests that run existing players with the plug-ins of hosts/."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hosts import calls, gst, page, scene
from hosts.chromium import Chromium
from hosts.gateway import Gateway, Start, make_hls
from hosts.runs import Runs

from usher.testing import media
from usher.testing.headend import HeadEnd

ROOT = Path(__file__).resolve().parents[2]
Row = Callable[[str, str, str, str], None]


@dataclass(frozen=True)
class Clip:
    """A file, or a manifest with its files.

    Attributes:
        name: its name in the rows of docs/hosts.md.
        file: the file or manifest that a player opens. It is encrypted, except that of the clear clip.
        clear: a file with the same pictures, not encrypted.
        content: the id and the keys of the content.
    """

    name: str
    file: Path
    clear: Path
    content: media.Content


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-page", action="store_true", help="write docs/hosts.md; needs a run of every test")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "quick: runs also in `make test`; all other tests run only in `make hosts`")
    config.addinivalue_line("markers", "whole: takes long")
    config.stash[_ROWS] = {}


_ROWS = pytest.StashKey[dict[str, set[str]]]()


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Row:
    """Returns a function that adds a row to docs/hosts.md: ``row(table, host, case, result)``. The names of the tables
    are in page.py. Call it when the test has shown the result. Without --write-page, the page must have this row."""
    writing = request.config.getoption("--write-page")
    rows = request.config.stash[_ROWS]

    def add(table: str, host: str, case: str, result: str) -> None:
        line = page.row(table, host, case, result)
        rows.setdefault(table, set()).add(line)
        if not writing:
            known = page.PAGE.read_text(encoding="utf-8").splitlines() if page.PAGE.exists() else []
            assert line in known, f"docs/hosts.md does not have this row; `make hosts` writes the page: {line}"

    return add


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Writes docs/hosts.md when every test has passed."""
    if not session.config.getoption("--write-page"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    left_out = any(reporter.stats.get(kind) for kind in ("deselected", "skipped")) if reporter else False
    ran = {item.path.name for item in session.items}
    left_out |= any(file.name not in ran for file in Path(__file__).parent.glob("test_*.py"))
    if exitstatus == 0 and not left_out:
        page.PAGE.write_text(page.render(session.config.stash[_ROWS]), encoding="utf-8")
    else:
        print("\ndocs/hosts.md was not written: a test failed or did not run")


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder of the built plug-ins and programs; USHER_HOSTS names another one."""
    folder = Path(os.environ.get("USHER_HOSTS", ROOT / "build" / "hosts")).resolve()
    assert folder.is_dir(), f"{folder} does not exist: `make hosts` builds it"
    return folder


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Clip]:
    """The clips by name. ffmpeg writes `progressive` (cenc, 6 s) and `preview` (another key). The others are in
    Tests/media/dash: `cenc` and `cbcs` (fragmented video.mp4, no sound), `dash-cenc`, `dash-cbcs`, `dash-two-keys` and
    `dash-rotating`."""
    folder = tmp_path_factory.mktemp("clips")
    command = [str(ROOT / "scripts" / "make-media.sh"), str(folder), "--seconds", "6"]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    main, preview = media.read(folder / "media.json")
    found = {
        "progressive": Clip("progressive MP4, cenc", main.files["encrypted"], main.files["clear"], main),
        "preview": Clip("progressive MP4, cenc, no sound", preview.files["encrypted"], preview.files["clear"], preview),
    }
    for content in media.read(ROOT / "Tests" / "media" / "dash" / "media.json"):
        name = content.content_id.removeprefix("dash-")
        manifest, clear = content.files["playlist"], content.files["clear"]
        words = {"two-keys": "cenc, a key for each track", "rotating": "cenc, a new key every 2 s"}.get(name, name)
        found[content.content_id] = Clip(f"DASH, {words}", manifest, clear, content)
        if name == content.scheme:
            found[name] = Clip(f"fragmented MP4, {name}", manifest.parent / "video.mp4", clear, content)
    return found


@pytest.fixture
def head_end(headend_factory: Callable[..., HeadEnd], clips: dict[str, Clip]) -> Callable[..., HeadEnd]:
    """Returns a function that starts a head-end that has the keys of all clips, with the system's clock and a limit of
    one stream: ``head_end(period_s=1, …settings)``. Its licences need a session."""

    def make(**settings: Any) -> HeadEnd:
        defaults = {"clock": "system", "limit": 1, "period_s": 1.0, "ssm_required": "always", "beat_tolerance_ms": 2000}
        server = headend_factory(**{**defaults, **settings})
        for clip in clips.values():
            for key in clip.content.keys:
                server.add_key(key.kid, key.key, clip.content.content_id)
        return server

    return make


@pytest.fixture
def period_s() -> float:
    """The period of the sessions of a test's head-end, in seconds. A test gives another one as its parameter."""
    return 1.0


@pytest.fixture
def runs(head_end: Callable[..., HeadEnd], tmp_path: Path, built: Path) -> Iterator[Runs]:
    made = Runs(head_end(period_s=2.0), tmp_path, built / "usher" / "usher")
    yield made
    for process in made.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="session")
def film(clips: dict[str, Clip], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An HLS playlist of the clip `progressive`, encrypted with an AES-128 key."""
    return make_hls(tmp_path_factory.mktemp("hls"), clips["progressive"])


@pytest.fixture
def server(head_end: Callable[..., HeadEnd]) -> HeadEnd:
    """The head-end of a gateway."""
    return head_end(period_s=2.0)


@pytest.fixture
def start(server: HeadEnd, clips: dict[str, Clip], tmp_path: Path, built: Path) -> Iterator[Start]:
    """Returns a function that starts a gateway for the clip `progressive`: start(words…, option=value…)."""
    made: list[Gateway] = []

    def run(*words: str | Path, content_id: str = clips["progressive"].content.content_id, **options: Any) -> Gateway:
        made.append(Gateway(server, tmp_path, built / "usher" / "usher", content_id, *words, **options))
        return made[-1]

    yield run
    for one in made:
        one.close()


@pytest.fixture
def chromium(tmp_path: Path) -> Iterator[Chromium]:
    """Opens pages in Chromium."""
    browser = Chromium(tmp_path)
    yield browser
    browser.close()


@pytest.fixture
def web() -> Iterator[Callable[[Path], str]]:
    """Returns a function that serves the folder of a file by HTTP and returns the URL of the file."""
    with scene.serving() as serve:
        yield serve


@pytest.fixture(scope="session")
def timing(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Returns a function that builds the library for calls.Calls. The function gets the plug-in that makes the
    calls."""
    return functools.cache(lambda plugin: calls.build(plugin, tmp_path_factory.mktemp("calls")))


@pytest.fixture
def room(
    head_end: Callable[..., HeadEnd], tmp_path: Path, built: Path, period_s: float, timing: Callable[[Path], Path]
) -> Iterator[gst.Room]:
    """The scene of GStreamer's players."""
    library = timing(built / "gstreamer" / "libgstusher.so")
    made = gst.Room(head_end(period_s=period_s), tmp_path, built, library)
    yield made
    for player in made.started:
        player.close()


def ffprobe(file: Path) -> dict[str, Any]:
    """Returns what ffprobe says about a file."""
    command = ["ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", str(file)]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True)
    value: dict[str, Any] = json.loads(done.stdout)
    return value
