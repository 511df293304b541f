"""The faults that need network namespaces or another clock, and the titles of all rows in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from known import FAULTS, TIMEOUT_MS
from operations import Fault
from scene import Scene
from world import SILENT, World

DAY_S = 86_400


def lost(change: Callable[[World], None], scene: Scene) -> None:
    """From now on the network loses all requests, and no side gets an error."""
    assert scene.world is not None and scene.door is not None
    scene.door.present(scene.authority.server_context())  # closes the open connection
    change(scene.world)
    scene.lose()


def found(change: Callable[[World], None], scene: Scene) -> None:
    assert scene.world is not None
    change(scene.world)
    scene.find()


def mute(world: World) -> None:
    """Makes the name server stop answering, and sets the wall clock 120 s ahead. The library uses a known address for
    one minute without a new lookup, so after this jump it must look the name up again."""
    world.name_server.is_mute = True
    world.wall_clock(120)


def two_addresses(first: str, scene: Scene) -> None:
    """Makes the name server return two addresses: `first`, at which no head-end answers, and the right one."""
    assert scene.world is not None and scene.door is not None
    scene.door.present(scene.authority.server_context())  # closes the open connection
    scene.world.name_server.addresses = [first, "127.0.0.1"]


def one_address(scene: Scene) -> None:
    assert scene.world is not None
    scene.world.name_server.addresses = ["127.0.0.1"]


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
        "first refuses",
        "the name has two addresses; the first refuses connections",
        partial(two_addresses, "127.0.0.2"),
        one_address,
        door="named",
    ),
    Fault(
        "first silent",
        "the name has two addresses; the first does not answer",
        partial(two_addresses, SILENT),
        one_address,
        door="named",
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

OVER_HTTP2 = tuple(fault for fault in (*FAULTS, *WORLDLY) if fault.http2)
"""The faults that the tests also play over HTTP/2."""

TITLES: Mapping[str, str] = {fault.key: fault.title for fault in (*FAULTS, *WORLDLY)}
"""For the key of each fault, its title."""
