"""A world for one process: a network with two sides, a name server that can stop answering, and a wall clock that can
jump.

``enter()`` returns the command that starts a program in new network and mount namespaces. In this program ``World()``
sets up the network. The kernel removes the namespaces when the process ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import queue
import select
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

NEAR, FAR = "10.77.0.1", "10.77.0.2"
SILENT = "10.77.0.3"
"""An address on the far side that no machine has, so that packets to it are lost."""
NAME = "headend.example.invalid"
NAME_SERVER = "127.0.0.53"
ASKS_AGAIN_S = 1
"""After this time without an answer the system's resolver asks the name server again (`timeout` in resolv.conf)."""
GIVES_UP_S = 10
"""After this time without an answer the system's resolver returns an error."""
CLONE_NEWNET = 0x4000_0000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x4004_54CA, 0x0001, 0x1000


def enter() -> list[str]:
    """Returns the command that starts a program in new namespaces; the command of the program must follow it. If the
    user is not root, the command also makes a user namespace."""
    return ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net", "--mount", "--"]


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")


class Side:
    """A thread in a network namespace of its own. It runs the functions that a caller passes to `run`."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        ready: Future[int] = Future()
        threading.Thread(target=self._live, args=(ready,), daemon=True).start()
        self.thread_id = ready.result(10)

    def _live(self, ready: Future[int]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET):
            ready.set_exception(OSError(ctypes.get_errno(), "unshare: no network namespace"))
            return
        ready.set_result(threading.get_native_id())
        while True:
            work, told = self._work.get()
            try:
                told.set_result(work())
            except BaseException as error:
                told.set_exception(error)

    def run(self, work: Callable[[], T]) -> T:
        """Runs `work` in the namespace, and returns its result. Programs that `work` starts also run in this
        namespace."""
        told: Future[T] = Future()
        self._work.put((work, told))
        return told.result(30)


class NameServer:
    """A name server. It answers every question with `addresses` (IPv4); while `is_mute`, it does not answer."""

    def __init__(self, address: str = NAME_SERVER) -> None:
        self.is_mute = False
        self.addresses = ["127.0.0.1"]
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 53))
        self.asked = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            question, sender = self._socket.recvfrom(4096)
            self.asked += 1
            if not self.is_mute:
                self._socket.sendto(answer(question, self.addresses), sender)


def answer(question: bytes, addresses: list[str]) -> bytes:
    """Returns the answer to a DNS question: for IPv4 these addresses, for IPv6 no address."""
    end = question.index(b"\0", 12) + 5
    found = addresses if question[end - 4 : end - 2] == b"\0\1" else []
    records = b"".join(b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(address) for address in found)
    return question[:2] + struct.pack("!HHHHH", 0x8180, 1, len(found), 0, 0) + question[12:end] + records


def resolver_of(server: str) -> str:
    """Returns the text of resolv.conf with this name server."""
    return f"nameserver {server}\noptions timeout:{ASKS_AGAIN_S} attempts:{GIVES_UP_S // ASKS_AGAIN_S}\n"


class World:
    """For a process that ``enter()`` started: its two network namespaces, its name server and its wall clock."""

    def __init__(self) -> None:
        run("ip", "link", "set", "lo", "up")
        self._sides = 1
        self.near = NEAR
        """The address of the near side."""
        self.far = Side()
        macs = ("02:00:00:00:00:01", "02:00:00:00:00:02")
        peer = ("peer", "name", "far", "address", macs[1], "netns", str(self.far.thread_id))
        run("ip", "link", "add", "near", "address", macs[0], "type", "veth", *peer)
        run("ip", "address", "add", f"{NEAR}/24", "dev", "near")
        self.far.run(lambda: run("ip", "address", "add", f"{FAR}/24", "dev", "far"))
        self._far_up()
        self._near_up()
        self._own_resolver()
        self.name_server = NameServer()

    def _own_resolver(self) -> None:
        """Gives this mount namespace its own files of the resolver."""
        folder = Path(tempfile.mkdtemp(prefix="usher-world-"))
        for name, text in (("resolv.conf", resolver_of(NAME_SERVER)), ("nsswitch.conf", "hosts: files dns\n")):
            (folder / name).write_text(text)
            run("mount", "--bind", str(folder / name), f"/etc/{name}")
            (folder / name).unlink()
        folder.rmdir()

    def use_names_of(self, server: str) -> None:
        """Makes the system's resolver ask this name server from now on."""
        Path("/etc/resolv.conf").write_text(resolver_of(server))

    def _near_up(self) -> None:
        run("ip", "link", "set", "near", "up")
        # The neighbour entry is permanent. Otherwise, a few seconds after the link is down, connections would fail with
        # "no route to host" instead of getting no reply.
        for address in (FAR, SILENT):
            run("ip", "neighbour", "replace", address, "lladdr", "02:00:00:00:00:02", "dev", "near", "nud", "permanent")

    def _far_up(self) -> None:
        self.far.run(lambda: run("ip", "link", "set", "far", "up"))
        self.far_neighbour(NEAR)

    def listen(self) -> socket.socket:
        """Returns a listening socket on the far side."""
        return self.far.run(lambda: socket.create_server((FAR, 0)))

    def far_neighbour(self, address: str) -> None:
        """Tells the far side where an address of the near side is."""
        permanent = ("lladdr", "02:00:00:00:00:01", "dev", "far", "nud", "permanent")
        self.far.run(lambda: run("ip", "neighbour", "replace", address, *permanent))

    def move(self, address: str) -> None:
        """Gives the near side this address, and takes its present address away."""
        before = self.near
        run("ip", "address", "add", f"{address}/24", "dev", "near")
        run("ip", "address", "del", f"{before}/24", "dev", "near")
        # With the first address, the kernel may have removed the second one and the neighbour entries. This depends on
        # the sysctl `promote_secondaries`.
        run("ip", "address", "replace", f"{address}/24", "dev", "near")
        self._near_up()
        self.near = address

    def new_side(self, address: str) -> Side:
        """Returns another side, which has this address, its own link to the far side, and its own name server that
        answers with FAR."""
        side = Side()
        self._sides += 1
        far = f"far{self._sides}"
        run("ip", "link", "add", "new", "type", "veth", "peer", "name", far, "netns", str(self.far.thread_id))
        run("ip", "link", "set", "new", "netns", str(side.thread_id))
        side.run(lambda: run("ip", "link", "set", "lo", "up"))
        side.run(lambda: run("ip", "link", "set", "new", "up"))
        side.run(lambda: run("ip", "address", "add", f"{address}/32", "peer", FAR, "dev", "new"))
        self.far.run(lambda: run("ip", "link", "set", far, "up"))
        self.far.run(lambda: run("ip", "route", "add", f"{address}/32", "dev", far))
        side.run(NameServer).addresses = [FAR]
        return side

    def link(self, *, up: bool) -> None:
        """Brings the near end of the link up or down."""
        if up:
            self._near_up()
        else:
            run("ip", "link", "set", "near", "down")

    def cable(self, *, plugged: bool) -> None:
        """Brings the far end of the link up or down. While it is down, all packets to it are lost."""
        if plugged:
            self._far_up()
        else:
            self.far.run(lambda: run("ip", "link", "set", "far", "down"))

    def wall_clock(self, ahead_s: int) -> None:
        """Sets the wall clock `ahead_s` seconds ahead of the true time; if `ahead_s` is negative, behind the true
        time. The library of clocks.c must be preloaded."""
        ctypes.c_longlong.in_dll(ctypes.CDLL(None), "wall_clock_offset_s").value = ahead_s


def open_tun(name: str, *addresses: str) -> int:
    """Makes a network device with these addresses. The caller reads from the returned descriptor the packets that the
    kernel sends over the device, and writes the packets that the kernel shall receive."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    for address in addresses:
        run("ip", "address", "add", f"{address}/24", "dev", name)
    run("ip", "link", "set", name, "up")
    return tun


class SlowLink:
    """Another link between the two sides: each packet takes `delay_s`."""

    NEAR = "10.78.0.1"
    FAR = ("10.78.0.2", "10.78.0.3")

    def __init__(self, world: World, delay_s: float) -> None:
        self.is_cut = False
        """Whether the link loses all packets."""
        self._delay_s = delay_s
        near = open_tun("slow", self.NEAR)
        far = world.far.run(lambda: open_tun("slow", *self.FAR))
        self._other = {near: far, far: near}
        threading.Thread(target=self._carry, daemon=True).start()

    def _carry(self) -> None:
        packets: deque[tuple[float, int, bytes]] = deque()
        while True:
            left = max(0.0, packets[0][0] - time.monotonic()) if packets else None
            ready = select.select(list(self._other), [], [], left)[0]
            now = time.monotonic()
            for end in ready:
                packet = os.read(end, 65536)
                if not self.is_cut:
                    packets.append((now + self._delay_s, self._other[end], packet))
            while packets and packets[0][0] <= now:
                _, end, packet = packets.popleft()
                os.write(end, packet)
