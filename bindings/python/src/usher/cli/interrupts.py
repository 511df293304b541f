"""Ctrl-C for commands that must not lose a reply: the command ends at the next point where it is safe."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """While its ``with`` block runs, the first Ctrl-C only sets ``pressed``; a second one raises KeyboardInterrupt at
    once. Outside the main thread, where Python handles no signals, it does nothing."""

    def __init__(self) -> None:
        self.pressed = threading.Event()
        self._before: object = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]
            self._before = None

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self.pressed.is_set():
            raise KeyboardInterrupt
        self.pressed.set()

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C was pressed."""
        if self.pressed.is_set():
            raise KeyboardInterrupt

    def sleep(self, seconds: float) -> None:
        """Waits. Raises KeyboardInterrupt if Ctrl-C is pressed meanwhile."""
        if self.pressed.wait(seconds):
            raise KeyboardInterrupt
