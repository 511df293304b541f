"""A terminal for players."""

from __future__ import annotations

import contextlib
import os
import select
import threading


class Terminal:
    """A pseudo terminal. A thread reads what the player prints, so that the player never waits for the terminal."""

    def __init__(self) -> None:
        self.outer, self.inner = os.openpty()
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while not self._closing.is_set():
            if select.select([self.outer], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    os.read(self.outer, 65536)
        os.close(self.outer)  # the kernel sends SIGHUP

    def close(self) -> None:
        if not self._closing.is_set():
            os.close(self.inner)
            self._closing.set()
            self._reader.join()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
