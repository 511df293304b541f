"""Runs `usher gateway`, and players that get its URL."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hosts.scene import PATIENCE_S, until

from usher.testing.headend import HeadEnd

if TYPE_CHECKING:
    from hosts.conftest import Clip

HOST = "usher gateway"
"""The name of the gateway in the rows of docs/hosts.md."""

RAW = ["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p"]
"""With these options ffmpeg writes each decoded picture once, whatever its time stamp."""


def make_hls(folder: Path, clip: Clip, key_line: str = "https://keys.example/{kid}") -> Path:
    """Makes an HLS playlist with AES-128 keys out of the clear clip, in segments of one second; returns its path.
    `key_line`: the URI of the key, in which {kid} stands for the key id."""
    folder.mkdir(exist_ok=True)
    key = clip.content.keys[0]
    (folder / "key").write_bytes(key.key)
    info = [key_line.format(kid=key.kid.hex()), str(folder / "key"), "000102030405060708090a0b0c0d0e0f"]
    (folder / "info").write_text("\n".join(info) + "\n")
    words = ["-c", "copy", "-hls_time", "1", "-hls_list_size", "0", "-hls_key_info_file", str(folder / "info")]
    command = ["ffmpeg", "-v", "error", "-i", str(clip.clear), *words, str(folder / "film.m3u8")]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    (folder / "key").unlink()
    assert "METHOD=AES-128" in (folder / "film.m3u8").read_text()
    return folder / "film.m3u8"


def decoded(name: str | Path) -> str:
    """Returns the hash of the pictures that ffmpeg decodes from a file or URL."""
    command = ["ffmpeg", "-v", "error", "-i", str(name), "-map", "0:v", *RAW, "-"]
    done = subprocess.run(command, check=True, timeout=3 * PATIENCE_S, capture_output=True)
    assert done.stdout, done.stderr
    return hashlib.sha256(done.stdout).hexdigest()


def vlc(folder: Path) -> list[str]:
    """Returns the command with which VLC writes each picture that it shows to a folder; it leaves out pictures that are
    late."""
    folder.mkdir(exist_ok=True)
    scene = ["--video-filter=scene", "--scene-format=png", "--scene-ratio=1", f"--scene-path={folder}"]
    words = ["vlc", "-I", "dummy", "--no-audio", "--vout=dummy", "--no-drop-late-frames", "--no-skip-frames", *scene]
    # VLC refuses to run as root, so give it another user id.
    user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
    return [*user, "env", f"HOME={folder}", *words, "--play-and-exit"]


class Reply:
    """The status, the headers and the body of a reply."""

    def __init__(self, reply: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = reply.status, reply.headers, reply.read()
        self.text = self.body.decode(errors="replace")


def ask(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Reply:
    """Sends a request, and returns the reply. In the names of headers, '_' stands for '-'."""
    parts = urlsplit(url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE_S)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, parts.path, body, named)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def key_url(playlist_url: str) -> str:
    """Returns the URL of the first key that a rewritten playlist names."""
    found = re.search(r'#EXT-X-KEY:.*URI="([^"]+)"', ask(playlist_url).text)
    assert found
    return playlist_url.split("/", 3)[0] + "//" + urlsplit(playlist_url).netloc + found[1]


class Gateway:
    """A process of `usher gateway`.

    Attributes:
        process: the process.
    """

    def __init__(
        self,
        server: HeadEnd,
        folder: Path,
        program: Path,
        content_id: str,
        *words: str | Path,
        environment: dict[str, str] | None = None,
        shell: str = 'exec "$@"',
        terminal: int | None = None,
        **options: Any,
    ) -> None:
        """`words`: the clip and what follows it. An option with the value True has no value on the command line; an
        option with the value None is left out. `shell`: a script that runs the command, which is "$@". `terminal`: the
        descriptor of a pseudo terminal that becomes the controlling terminal of the gateway."""
        self.server = server
        token = folder / "token"
        token.write_text(server.content_token(content_id=content_id) + "\n")
        values = {"license": server.license_url("clearkey"), "ssm": server.ssm_url, "token-file": token}
        values |= {name.replace("_", "-"): value for name, value in options.items()}
        given = [f"--{name}" + ("" if value is True else f"={value}") for name, value in values.items() if value]
        number = len(list(folder.glob("gateway-*.out")))
        self._out, self._errors = folder / f"gateway-{number}.out", folder / f"gateway-{number}.err"
        command = ["sh", "-c", shell, "sh", str(program), "gateway", *given, *map(str, words)]
        with self._out.open("wb") as out, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command if terminal is None else ["setsid", "--ctty", *command],
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL if terminal is None else terminal,
                stdout=out,
                stderr=errors,
                start_new_session=terminal is None,
            )

    @property
    def errors(self) -> str:
        return self._errors.read_text(errors="replace")

    @property
    def out(self) -> str:
        return self._out.read_text(errors="replace")

    def url(self, number: int = 0) -> str:
        """Waits until the gateway has printed a URL, and returns it; `number` counts from 0."""

        def find() -> str:
            lines = self.out.splitlines()
            assert self.process.poll() is None or len(lines) > number, self.errors
            return lines[number] if len(lines) > number else ""

        found: str = until(find, f"the gateway prints URL {number}: {self.errors}")
        return found

    def child(self) -> int:
        """Waits until the player runs. Returns its process id."""

        def find() -> int:
            assert self.process.poll() is None, self.errors
            listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            return int(listed[0]) if listed else 0

        found: int = until(find, "the player runs")
        return found

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def close(self) -> None:
        """Ends the gateway, which first tears down its session. After SIGKILL, its guardian would do this later, and
        perhaps at the server of the next test, which may have the same port."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


Start = Callable[..., Gateway]
"""The type of a function that starts a gateway: start(words…, option=value…)."""
