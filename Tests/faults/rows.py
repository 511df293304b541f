"""The faults that need network namespaces or another clock, and the titles of all rows in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from known import FAULTS, TIMEOUT_MS
from operations import Fault
from scene import Scene
from world import World

DAY_S = 86_400


def lost(change: Callable[[World], None], scene: Scene) -> None:
    """Makes the network lose all requests from now on, without an error."""
    assert scene.world is not None and scene.door is not None
    scene.door.present(scene.authority.server_context())  # closes the open connection
    change(scene.world)
    scene.lose()


def found(change: Callable[[World], None], scene: Scene) -> None:
    assert scene.world is not None
    change(scene.world)
    scene.find()


def mute(world: World) -> None:
    """Makes the name server stop answering. Then waits until the known addresses are too old: the library uses them
    without a new lookup for one minute."""
    world.name_server.is_mute = True
    world.wall_clock(120)


def spoken(world: World) -> None:
    world.name_server.is_mute = False
    world.wall_clock(0)


def clock(ahead_s: int, scene: Scene) -> None:
    assert scene.world is not None
    scene.world.wall_clock(ahead_s)


WORLDLY = (
    Fault(
        "mute names",
        "the name server does not answer",
        partial(lost, mute),
        partial(found, spoken),
        door="named",
        fails_after_ms=TIMEOUT_MS,
    ),
    Fault(
        "link down",
        "our network link is down, then up",
        partial(lost, lambda world: world.link(up=False)),
        partial(found, lambda world: world.link(up=True)),
        door="far",
    ),
    Fault(
        "cable",
        "the far end of the link is down, then up: all packets are lost",
        partial(lost, lambda world: world.cable(plugged=False)),
        partial(found, lambda world: world.cable(plugged=True)),
        door="far",
        fails_after_ms=TIMEOUT_MS,
    ),
    Fault("clock ahead", "the wall clock jumps a day ahead", partial(clock, DAY_S), partial(clock, 0), door="tls"),
    Fault("clock back", "the wall clock jumps a day back", partial(clock, -DAY_S), partial(clock, 0), door="tls"),
)
"""The faults that need separate network and mount namespaces (world.py)."""

TITLES: Mapping[str, str] = {fault.key: fault.title for fault in (*FAULTS, *WORLDLY)}
"""For the key of each fault, its title."""
