"""Further processes of one head-end. They listen on the same port, and share the session table in Redis."""

from __future__ import annotations

import copyreg
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from .config import HeadEndConfig
from .server import HeadEnd

_END_S = 10.0
_READY = b"ready\n"


def _read_only(mapping: Mapping[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


# The settings have read-only mappings (in the table of codes). pickle cannot write these by itself.
copyreg.pickle(MappingProxyType, lambda proxy: (_read_only, (dict(proxy),)))

Key = tuple[bytes, bytes, str | None]
"""A content key: key id, key, and the content to which it belongs."""


@dataclass(frozen=True)
class Plan:
    """What a process of a head-end needs to know.

    Attributes:
        config: the settings.
        keys: content keys.
        media: files with further content keys.
    """

    config: HeadEndConfig
    keys: Sequence[Key]
    media: Sequence[Path]

    def head_end(self) -> HeadEnd:
        """Makes the head-end, not started yet."""
        made = HeadEnd(self.config)
        for kid, key, content_id in self.keys:
            made.add_key(kid, key, content_id)
        for path in self.media:
            made.add_media(path)
        return made


class Workers:
    """Processes that serve the same port as the process that starts them, until ``close``.

    Args:
        count: how many processes to start.
        plan: what they serve.
        port: the port on which this process listens.

    Raises:
        OSError: a process has not started.
    """

    def __init__(self, count: int, plan: Plan, port: int) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        sent = pickle.dumps(replace(plan, config=replace(plan.config, port=port)))
        command = [sys.executable, "-c", f"from {__name__} import main; main()"]
        try:
            for _ in range(count):
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
                )
                self._processes.append(process)
                assert process.stdin is not None
                process.stdin.write(sent)
                process.stdin.flush()
            for process in self._processes:
                if process.stdout is None or process.stdout.readline() != _READY:
                    raise OSError("a worker process of the head-end has not started")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the processes. They also end if this process is killed, because their standard input then ends."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._processes.clear()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def main() -> None:
    """The program of a worker: reads its plan from standard input, and serves until standard input ends."""
    plan: Plan = pickle.load(sys.stdin.buffer)
    with plan.head_end():
        sys.stdout.buffer.write(_READY)
        sys.stdout.buffer.flush()
        while sys.stdin.buffer.read(4096):
            pass
