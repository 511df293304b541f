"""Parts that the tests of all players share: a head-end with a token file, functions that wait with a time
limit, and a web server."""

from __future__ import annotations

import contextlib
import functools
import http.server
import io
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from usher.testing.headend import HeadEnd, Session, SessionState

PATIENCE_S = 20.0 * int(os.environ.get("USHER_TEST_PATIENCE", "1"))
"""The longest time for which a test waits for one condition, in seconds."""

Player = TypeVar("Player")


def until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE_S) -> Any:
    """Waits until `condition` returns a true value, and returns this value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


def peak_kb(pid: int) -> int:
    """Returns the most memory that a running process has used so far (VmHWM), in kB."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found, "the process has ended"
    return int(found[1])


def until_ended(server: HeadEnd, state: SessionState = SessionState.TORN_DOWN) -> Session:
    """Waits until the head-end holds no session any more. Checks that the newest session has ended in `state`, and
    returns this session."""
    try:
        until(lambda: not server.sessions.active(), "the head-end holds no session")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{server.journal.dump()}") from None
    newest = server.sessions.all()[-1]
    assert newest.state is state, server.journal.dump()
    return newest


class Scene(Generic[Player]):
    """One head-end, a token file, and the players that a test starts.

    Attributes:
        server: the head-end.
        folder: a folder for the files of the test.
        token_file: the file from which a player reads its token.
        started: the players, oldest first.
    """

    def __init__(self, server: HeadEnd, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.token_file = folder / "token"
        self.started: list[Player] = []

    def token(self, content_id: str) -> str:
        return self.server.content_token("account-1", content_id)

    def give_token(self, content_id: str) -> Path:
        """Writes the token of the next playback to the token file. Returns the file."""
        self.token_file.write_text(self.token(content_id) + "\n")
        return self.token_file

    def occupy(self) -> Session:
        """Lets another screen of the same account take the only slot. Returns the session of this screen."""
        return self.server.sessions.set_up(account="account-1", device="other", content_ids=("other",), limit=1)

    def until_ended(self, state: SessionState = SessionState.TORN_DOWN) -> Session:
        """Waits until the head-end holds no session any more. Checks that the newest session has ended in `state`, and
        returns this session."""
        return until_ended(self.server, state)


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves files and byte ranges of them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def send_head(self) -> Any:
        path = Path(self.translate_path(self.path))
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not asked or not path.is_file():
            return super().send_head()
        data = path.read_bytes()
        first, last = int(asked[1]), min(int(asked[2] or len(data)), len(data) - 1)
        self.send_response(206)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        return io.BytesIO(data[first : last + 1])

    def end_headers(self) -> None:
        self.send_header("Accept-Ranges", "bytes")
        super().end_headers()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        with contextlib.suppress(ConnectionError):  # the player has read enough
            super().copyfile(source, outputfile)


@contextlib.contextmanager
def serving() -> Iterator[Callable[[Path], str]]:
    """Yields a function that serves a folder and its parent folder by HTTP. The function gets a file of the folder and
    returns the URL of the file."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def serve(file: Path) -> str:
        top = file.parent.parent
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(top)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/{file.relative_to(top)}"

    try:
        yield serve
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
