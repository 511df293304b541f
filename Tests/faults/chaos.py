"""A program that plays one run of chaos in its own network namespaces, and prints what it found as one line of JSON.

To start it, run the command of ``world.enter()`` followed by ``python chaos.py CONFIG``; CONFIG is JSON (``Config``).
The head-end runs in this process, on the far side of the network; the hosts are child processes on the near side. When
this process ends, the kernel removes the namespaces and kills the hosts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from bad_network import Link  # noqa: E402
from chaos_plan import Trouble, draw  # noqa: E402
from chaos_verdict import PERIOD_MS, Calm, Watch, judge, now_ms  # noqa: E402
from moves import HostProcess, die_with_parent, named  # noqa: E402
from world import FAR, World  # noqa: E402

from usher.testing.headend import HeadEnd  # noqa: E402

PERIOD_S = PERIOD_MS / 1000
GRACE = 2.0
"""A session lives this many periods without a keep-alive."""
LOSS = 0.3
NEARS = tuple(f"10.77.0.{number}" for number in range(11, 19))
"""The addresses that the near side gets at its moves, in this order."""
SECOND_S = 1.0
"""How long after the death of a host the run counts the slots that the head-end still holds for it."""


@dataclass(frozen=True)
class Config:
    seconds: float
    seed: int
    playbacks: int = 50
    context: dict[str, Any] = field(default_factory=dict)
    """Options of the hosts' contexts."""
    delegate: dict[str, Any] = field(default_factory=dict)
    """Options of the hosts' delegates."""
    troubles: list[dict[str, Any]] | None = None
    """The troubles of this run; None: ``chaos_plan.draw`` draws them."""


class Chaos:
    """The network, the head-end, the host that lives now, and the records of the run."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.world = World()
        self._prepare_addresses()
        self.world.name_server.addresses = [FAR]
        self.headend = self.world.far.run(
            lambda: HeadEnd(host="0.0.0.0", limit=1, period_s=PERIOD_S, grace=GRACE, control=False).start()
        )
        self.port = int(self.headend.url.rsplit(":", 1)[1])
        self.link = Link(self.world, self.port)
        self.calm = Calm()
        self.watch = Watch(self.headend, config.playbacks)
        self.slots_left: list[int] = []
        self.moves = 0
        self.host = self._new_host(spread_s=min(PERIOD_S, config.seconds / 10))

    def _prepare_addresses(self) -> None:
        """Adds a neighbour entry on the far side for each address that the near side will have."""
        for address in NEARS:
            self.world.far_neighbour(address)

    def _new_host(self, spread_s: float) -> HostProcess:
        tokens = [self.headend.content_token(account=f"account-{index}") for index in range(self.config.playbacks)]
        self.watch.begin_life(now_ms())
        options = {"context": self.config.context, "delegate": self.config.delegate}
        config = {**named(self.headend), "tokens": tokens, "spread_s": spread_s, **options}
        return HostProcess(config, self.watch.event)

    # ---- the troubles ----------------------------------------------------------------------------------------------

    def partition(self, seconds: float) -> None:
        with self.calm.broken("partition"):
            self.link.cut()
            time.sleep(seconds)
            self.link.mend()

    def loss(self, seconds: float) -> None:
        with self.calm.broken("loss"):
            self.link.lose(LOSS)
            time.sleep(seconds)
            self.link.mend()

    def restart(self, seconds: float, *, keep_table: bool) -> None:
        with self.calm.broken("restart"):
            self.headend.stop()
            self.link.refuse()
            if not keep_table:
                self.watch.forgot(self.headend.sessions.active(), now_ms())
            time.sleep(seconds)
            self.world.far.run(lambda: self.headend.restart(keep_table=keep_table))
            self.link.mend()

    def move(self, _: float) -> None:
        with self.calm.broken("move"):
            self.world.move(NEARS[self.moves % len(NEARS)])
            self.moves += 1
            self.host.tell("moved")

    def stop(self, seconds: float) -> None:
        with self.calm.broken("stop"):
            self.host.stop_for(seconds)

    def kill(self, _: float) -> None:
        killed_ms = now_ms()  # before the death, so that no teardown by the guardian seems to come earlier
        self.host.kill()
        received = self.watch.held_by_host()
        self.watch.end_life(killed_ms)
        time.sleep(SECOND_S)
        self.slots_left.append(len(received & self.watch.held_by_headend()))
        self.host = self._new_host(spread_s=PERIOD_S)

    def play(self, trouble: Trouble) -> None:
        TROUBLES[trouble.kind](self, trouble.lasts_s)

    # ---- the run ---------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        if not self.host.has_played.wait(60):
            raise TimeoutError("the host has not started its playbacks within 60 s")
        began, began_ms = time.monotonic(), now_ms()
        given = self.config.troubles
        troubles = draw(self.config.seed, self.config.seconds) if given is None else [Trouble(**one) for one in given]
        for trouble in troubles:
            self.watch.look_until(began + trouble.at_s)
            self.play(trouble)
        self.watch.look_until(began + self.config.seconds)
        self.watch.begin_closing(now_ms())
        self.host.tell("end")
        if not self.host.has_ended.wait(30):
            raise TimeoutError("the host has not ended within 30 s")
        self.watch.end_life(now_ms(), is_closed=True)
        found = judge(self.watch, self.calm, self.slots_left)
        found["seconds"] = round(time.monotonic() - began, 1)
        found["troubles"] = [f"{trouble.at_s:.1f} s: {trouble.kind} {trouble.lasts_s:g} s" for trouble in troubles]
        found["began_ms"] = began_ms
        return found


TROUBLES: dict[str, Callable[[Chaos, float], None]] = {
    "partition": Chaos.partition,
    "loss": Chaos.loss,
    "restart, table kept": lambda chaos, seconds: chaos.restart(seconds, keep_table=True),
    "restart, table lost": lambda chaos, seconds: chaos.restart(seconds, keep_table=False),
    "move": Chaos.move,
    "stop": Chaos.stop,
    "kill": Chaos.kill,
}


def main(config: str) -> None:
    die_with_parent()
    print(json.dumps(Chaos(Config(**json.loads(config))).run()), flush=True)
    os._exit(0)  # the threads of the far side and of the name server never end


if __name__ == "__main__":
    main(sys.argv[1])
