"""Replaces Apple's player and the viewer in the ports: a test CDM, a decoder, and the main queue."""

from __future__ import annotations

import hashlib
import queue
import sys
import threading

import av

from usher.testing import fairplay


class MainQueue:
    """Actions of the viewer from standard input, and actions that the application posts. Each is a list of words."""

    def __init__(self) -> None:
        self._actions: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def post(self, *action: str) -> None:
        """Adds an action. Any thread may call it."""
        self._actions.put(list(action))

    def next(self) -> list[str] | None:
        """Waits for the next action and returns it; returns None at the end of standard input."""
        return self._actions.get()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._actions.put(line.split())
        self._actions.put(None)


def say(text: str) -> None:
    """Prints a line. Any thread may call it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def make_spc(certificate: bytes, content_id: bytes) -> bytes:
    """Makes an SPC for this content, as Apple's streamingContentKeyRequestData(forApp:contentIdentifier:) does. The SPC
    has the form that the head-end reads."""
    return fairplay.make_spc(content_id, certificate)


def show(clip: str, spc: bytes, ckc: bytes) -> None:
    """Opens the CKC, decodes the pictures of the clip with its key, and prints their number and their hash."""
    say(pictures(clip, fairplay.open_ckc(ckc, spc)[1]))


def pictures(clip: str, key: bytes = b"") -> str:
    """Decodes the pictures of a clip; an empty `key` means a clear clip. Returns their number and their hash."""
    digest, count = hashlib.sha256(), 0
    with av.open(clip, options={"decryption_key": key.hex()} if key else {}) as container:
        for frame in container.decode(video=0):
            for plane in frame.planes:
                data = memoryview(plane)
                for row in range(plane.height):  # without the padding at the end of each row
                    digest.update(data[row * plane.line_size : row * plane.line_size + plane.width])
            count += 1
    return f"{count} frames, sha256 {digest.hexdigest()}"
