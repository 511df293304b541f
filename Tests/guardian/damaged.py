"""Memory with recovery records, as a hostile process could change it (Sources/CGuard/record.h)."""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import re
import socket
import struct
import subprocess
import time
from dataclasses import dataclass

from killing import LIMIT_S, UNDER_TOOL, guardian, guardians, wait_until

HEADER = struct.Struct("<QIIIIiI")
COPY = struct.Struct("<QQQ")
FIXED = 48
FIELD = struct.Struct("<II")
MASK = 2**64 - 1
MAGIC = 0x6365527265687355
PR_SET_CHILD_SUBREAPER = 36
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL = 1033, 2, 4, 1
COPIES = 5
"""How many copies of records this module reads and changes: the copy with the settings, and two copies of each of the
first two slots."""


def checksum(sequence: int, data: bytes) -> int:
    total = (sequence ^ MAGIC) * 0x9E3779B97F4A7C15 + len(data)
    for index, (word,) in enumerate(struct.iter_unpack("<Q", data)):
        product = ((word + 8 * index * 0x9E3779B97F4A7C15) & MASK) * 0xBF58476D1CE4E5B9
        total += (product & MASK) ^ (product >> 64)
    total &= MASK
    total = ((total ^ (total >> 32)) * 0x94D049BB133111EB) & MASK
    return total ^ (total >> 29)


@dataclass
class Area:
    """The first part of a host's memory for recovery records: the header and the first COPIES copies."""

    data: bytearray
    header_size: int
    copy_size: int
    size: int

    @classmethod
    def of_host(cls, process: int) -> Area:
        folder = f"/proc/{process}/fd"
        name = next(name for name in os.listdir(folder) if "usher-records" in os.readlink(f"{folder}/{name}"))
        with open(f"{folder}/{name}", "rb") as file:
            _, _, header_size, copy_size, _, _, _ = HEADER.unpack(file.read(HEADER.size))
            file.seek(0)
            data = bytearray(file.read(header_size + COPIES * copy_size))
            return cls(data, header_size, copy_size, os.fstat(file.fileno()).st_size)

    def copy(self, index: int) -> tuple[int, int, int]:
        """Returns where a copy begins, its sequence number and its length."""
        start = self.header_size + index * self.copy_size
        sequence, _, length = COPY.unpack_from(self.data, start)
        return start, sequence, length

    def newest(self) -> int:
        """Returns the index of the newest copy of the first slot."""
        return max((1, 2), key=lambda index: self.copy(index)[1])

    def seal(self, index: int, sequence: int, length: int) -> None:
        """Writes a head with the right checksum into a copy. If `length` is larger than the copy, the checksum is that
        of the bytes up to the end of the copy."""
        start = self.header_size + index * self.copy_size
        body = bytes(self.data[start + COPY.size : start + COPY.size + min(length, self.copy_size - COPY.size)])
        COPY.pack_into(self.data, start, sequence, checksum(sequence, body[: len(body) // 8 * 8]), length)

    def expire_in(self, ms: int) -> None:
        """Lets the lease of the newest record end soon, so that the guardian soon stops its attempts."""
        index = self.newest()
        start, sequence, length = self.copy(index)
        struct.pack_into(
            "<q", self.data, start + COPY.size + 8, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 10**6 + ms
        )
        self.seal(index, sequence, length)

    def send_to(self, port: int) -> None:
        """Lets the guardian send the newest teardown request to another port of this machine. The number of this port
        must have as many digits as the old one."""
        index = self.newest()
        start, sequence, length = self.copy(index)
        record = slice(start + COPY.size, start + COPY.size + length)
        sent = re.sub(rb"(//127\.0\.0\.1:)\d+", rb"\g<1>%d" % port, self.data[record])
        assert len(sent) == length and sent != self.data[record]
        self.data[record] = sent
        self.seal(index, sequence, length)

    def damage(self, dice: random.Random) -> None:
        """Changes something that a reader must not trust, and makes the checksum agree."""
        index = dice.choice((0, self.newest()))
        start, sequence, length = self.copy(index)
        body = start + COPY.size
        kind = dice.randrange(5)
        if kind == 0:  # a length that is too small or too large
            length = dice.choice((8, 40, FIXED, self.copy_size - COPY.size, self.copy_size, 2**40, MASK - 7))
        elif kind == 1:  # a field with a random kind and length
            FIELD.pack_into(self.data, body + FIXED, dice.randrange(30), dice.choice((0, 1, length, 2**31, 2**32 - 1)))
        elif kind == 2:  # any bytes
            for _ in range(dice.randrange(1, 40)):
                self.data[body + FIXED + dice.randrange(max(1, length - FIXED))] = dice.randrange(256)
        elif kind == 3:  # extreme numbers in the part of the record that has a fixed size
            ends = [dice.choice((0, -1, 2**62)) for _ in range(2)]
            numbers = [dice.choice((0, 1, 2**32 - 1)) for _ in range(4)]
            if ends[0] > 0 and numbers[0] == 1:
                # With a time limit of 1 ms, and a lease that does not end, the guardian would send for ten minutes.
                numbers[0] = 0
            struct.pack_into("<qq4I", self.data, body + 8, *ends, *numbers)
        else:  # a wrong header
            offset = dice.choice((8, 12, 16, 20, 28))
            struct.pack_into("<I", self.data, offset, dice.choice((0, 7, 2**31, 2**32 - 1)))
        self.seal(index, sequence, length)

    def run_guardian(self) -> int:
        """Starts the guardian with this memory, and ends the host at once. Returns how the guardian ended: 0, or a
        negative signal; 2 if it refused the memory."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        area = os.memfd_create("usher-records", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        host, channel = socket.socketpair()
        try:
            os.ftruncate(area, self.size)
            os.write(area, self.data)
            fcntl.fcntl(area, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
            before = guardians()

            def pass_on() -> None:
                for number, target in ((area, 103), (channel.fileno(), 104)):
                    os.dup2(number, target)
                os.dup2(103, 3)
                os.dup2(104, 4)
                os.closerange(5, 200)

            started = subprocess.run(
                [UNDER_TOOL or guardian()], preexec_fn=pass_on, close_fds=False, check=False, timeout=LIMIT_S
            )
            if started.returncode:
                return started.returncode
            channel.close()
            found = guardians() - before
            host.close()
            ended: list[int] = []

            def has_ended() -> bool:
                for process in found:
                    done, status = os.waitpid(process, os.WNOHANG)
                    if done:
                        ended.append(os.waitstatus_to_exitcode(status))
                return bool(ended)

            wait_until(has_ended, "the guardian runs")
            return ended[0]
        finally:
            os.close(area)
            host.close()
            channel.close()
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
