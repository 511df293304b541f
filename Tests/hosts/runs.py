"""Runs `usher run`, and players under it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hosts.scene import Scene, until

from usher.testing.headend import HeadEnd


class Runs(Scene["subprocess.Popen[bytes]"]):
    """A scene whose players run under `usher run`. `started` contains the processes of `usher run`, not those of the
    players."""

    def __init__(self, server: HeadEnd, folder: Path, program: Path) -> None:
        super().__init__(server, folder)
        self.program = program

    def start(
        self,
        clip: Path | str,
        content_id: str,
        *player: str | Path,
        terminal: int | None = None,
        shell: str = "",
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        """Starts `usher run` as a desktop does, with setsid(). Returns the process. `terminal`: the descriptor of a
        pseudo terminal that becomes the controlling terminal of `usher run`. `shell`: a script that runs the command,
        which is "$@"."""
        token_file = self.give_token(content_id)
        values = {"license": self.server.license_url("clearkey"), "ssm": self.server.ssm_url, "token-file": token_file}
        values |= {name.replace("_", "-"): value for name, value in options.items()}
        ours = [f"--{name}={value}" for name, value in values.items() if value is not None]
        command = [str(self.program), "run", *ours, str(clip), "--", *map(str, player)]
        if shell:
            command = ["sh", "-c", shell, "sh", *command]
        if terminal is not None:
            command = ["setsid", "--ctty", *command]
        out = (self.folder / f"out-{len(self.started)}").open("wb")
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=terminal is None,
        )
        out.close()
        self.started.append(process)
        return process

    def text(self, process: subprocess.Popen[bytes]) -> str:
        return (self.folder / f"out-{self.started.index(process)}").read_text(errors="replace")

    def child(self, process: subprocess.Popen[bytes]) -> int:
        """Waits until the player runs. Returns its process id. Before the player, `usher run` has another child for a
        moment: the process that starts the guardian."""

        def find() -> int:
            assert process.poll() is None, self.text(process)
            listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            return int(listed[0]) if listed and self.server.sessions.active() else 0

        found: int = until(find, "the player runs")
        return found
