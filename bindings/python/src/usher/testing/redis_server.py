"""A Redis server for a test: on a free port of loopback, with its data in a folder of its own."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

PROGRAM = "redis-server"
_START_S = 20.0


class RedisServer:
    """A Redis server that writes each change to its disk before it replies, so that a restart loses nothing.

    Args:
        program: the server's program.

    Attributes:
        url: the URL for clients.
    """

    def __init__(self, program: str = PROGRAM) -> None:
        self._program = program
        self._folder = Path(tempfile.mkdtemp(prefix="usher-redis-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._port = _free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        """Starts the server. Returns when it accepts connections and has read its data.

        Raises:
            FileNotFoundError: the program is not installed.
            RuntimeError: the server has ended, with the last lines of its log.
            TimeoutError: the server does not answer.
        """
        words = ["--bind", "127.0.0.1", "--port", str(self._port), "--dir", str(self._folder), "--save", ""]
        words += ["--appendonly", "yes", "--appendfsync", "always"]
        words += ["--auto-aof-rewrite-percentage", "0", "--logfile", str(self._folder / "log")]
        self._process = subprocess.Popen([self._program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None:
                log = (self._folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
                raise RuntimeError(f"redis-server has ended: {' '.join(log[-3:])}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"redis-server does not answer within {_START_S:.0f} s")
            time.sleep(0.01)

    def kill(self) -> None:
        """Kills the server with SIGKILL. ``start`` starts it again with its data, on the same port."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def changes(self) -> bytes:
        """Returns the log of all changes since the first start, as Redis writes it to its disk (append-only file)."""
        files = (self._folder / "appendonlydir").glob("*.incr.aof")
        return b"".join(file.read_bytes() for file in sorted(files, key=lambda file: int(file.name.split(".")[2])))

    def close(self) -> None:
        """Ends the server and deletes its data."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        """Whether the server replies to PING. While it reads its data, it replies with an error."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1) as line:
            line.sendall(b"PING\r\n")
            return line.recv(64) == b"+PONG\r\n"
        return False

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
