"""Measures how long the calls of a plug-in to libusher hold the threads of its player."""

from __future__ import annotations

import subprocess
from pathlib import Path

LIMIT_MS = 50.0
"""The longest time for which a call of a plug-in may hold a thread. The functions of MAY_WAIT are exceptions."""

MAY_WAIT = {"usher_context_free", "usher_read_mp4"}
"""These functions may wait. The GStreamer plug-in calls the first one when the process ends, to wait for the last
teardowns. The mpv plug-in calls the second one while mpv waits in the hook on_load; this call waits for the server of
the item."""


def build(plugin: Path, folder: Path) -> Path:
    """Builds timed_calls.c for all functions of libusher that a plug-in calls. Returns the library to preload."""
    command = ["nm", "--dynamic", "--undefined-only", "--format=just-symbols", str(plugin)]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    calls = " ".join(f"TIMED({name.split('@')[0]})" for name in names if name.startswith("usher_"))
    assert calls, f"{plugin} calls no function of libusher"
    library = folder / "timed_calls.so"
    source = Path(__file__).with_name("timed_calls.c")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-DCALLS={calls}"]
    subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True, timeout=60)
    return library


class Calls:
    """The calls of libusher that one process makes.

    Attributes:
        variables: the environment variables with which the process measures its calls.
    """

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self.variables = {"LD_PRELOAD": str(library), "USHER_CALL_TIMES": str(file)}

    def longest(self) -> dict[str, float]:
        """Returns for each function the longest time for which a call has held its thread, in ms; longest first."""
        found: dict[str, float] = {}
        for line in self._file.read_text().splitlines():
            name, microseconds = line.split()
            found[name] = max(found.get(name, 0.0), int(microseconds) / 1000)
        return dict(sorted(found.items(), key=lambda each: -each[1]))

    def longest_ms(self) -> float:
        """Returns the longest time of a call that must not wait."""
        return max(ms for name, ms in self.longest().items() if name not in MAY_WAIT)
