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
from dataclasses import dataclass, replace

from killing import LIMIT_S, UNDER_TOOL, guardian, guardians, wait_until

HEADER = struct.Struct("<QIIIIiI")
COPY = struct.Struct("<QQQ")
FIXED = 40
FIELD = struct.Struct("<II")
UPDATE = struct.Struct("<QqqII")
UPDATE_SIZE = 2048
MASK = 2**64 - 1
MAGIC = 0x6365527265687355
PR_SET_CHILD_SUBREAPER = 36
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL = 1033, 2, 4, 1
COPIES = 5
"""How many copies of records this module reads and changes: the copy with the settings, and two copies of each of the
first two slots."""
UPDATES = range(COPIES, COPIES + 4)
"""The numbers of the small copies, which have updates of the records in the first two slots. These numbers come
directly after those of the full copies."""


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
    """The parts of a host's memory for recovery records that this module changes: the header and the first COPIES
    copies, and the updates of the first two slots."""

    data: bytearray
    updates: bytearray
    header_size: int
    copy_size: int
    slot_count: int
    size: int

    @classmethod
    def of_host(cls, process: int) -> Area:
        folder = f"/proc/{process}/fd"
        name = next(name for name in os.listdir(folder) if "usher-records" in os.readlink(f"{folder}/{name}"))
        with open(f"{folder}/{name}", "rb") as file:
            _, _, header_size, copy_size, slot_count, _, _ = HEADER.unpack(file.read(HEADER.size))
            area = cls(bytearray(), bytearray(), header_size, copy_size, slot_count, os.fstat(file.fileno()).st_size)
            file.seek(0)
            area.data += file.read(header_size + COPIES * copy_size)
            for index in UPDATES:
                file.seek(area.update_at(index))
                area.updates += file.read(UPDATE_SIZE)
            return area

    def duplicate(self) -> Area:
        return replace(self, data=bytearray(self.data), updates=bytearray(self.updates))

    def update_at(self, index: int) -> int:
        """Returns where a small copy begins in the host's memory."""
        slot, which = divmod(index - COPIES, 2)
        copies = self.header_size + (1 + 2 * self.slot_count) * self.copy_size
        return copies + (which * self.slot_count + slot) * UPDATE_SIZE

    def place(self, index: int) -> tuple[bytearray, int, int]:
        """Returns the bytes that contain the copy, the position in them at which the copy begins, and its size."""
        if index in UPDATES:
            return self.updates, (index - COPIES) * UPDATE_SIZE, UPDATE_SIZE
        return self.data, self.header_size + index * self.copy_size, self.copy_size

    def copy(self, index: int) -> tuple[int, int, int]:
        """Returns where a copy begins, its sequence number and its length."""
        data, start, _ = self.place(index)
        sequence, _, length = COPY.unpack_from(data, start)
        return start, sequence, length

    def newest(self) -> int:
        """Returns the index of the newest copy of the first slot."""
        return max((1, 2), key=lambda index: self.copy(index)[1])

    def newest_update(self) -> int:
        """Returns the index of the newest update of the first slot."""
        return max(UPDATES[:2], key=lambda index: self.copy(index)[1])

    def seal(self, index: int, sequence: int, length: int) -> None:
        """Writes a head with the right checksum into a copy. If `length` is larger than the copy, the checksum is that
        of the bytes up to the end of the copy."""
        data, start, size = self.place(index)
        body = bytes(data[start + COPY.size : start + COPY.size + min(length, size - COPY.size)])
        COPY.pack_into(data, start, sequence, checksum(sequence, body[: len(body) // 8 * 8]), length)

    def expire_in(self, ms: int) -> None:
        """Lets the lease of the first slot end soon, so that the guardian soon stops its attempts."""
        end = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 10**6 + ms
        for index in (self.newest(), *UPDATES[:2]):
            data, start, _ = self.place(index)
            _, sequence, length = self.copy(index)
            if sequence:
                struct.pack_into("<q", data, start + COPY.size + 8, end)
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
        index = dice.choice((0, self.newest(), self.newest_update()))
        if index in UPDATES:
            self.damage_update(index, dice)
            return
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

    def damage_update(self, index: int, dice: random.Random) -> None:
        data, start, size = self.place(index)
        _, sequence, length = self.copy(index)
        record, boot, wall, token_at, token_size = UPDATE.unpack_from(data, start + COPY.size)
        extremes = (0, FIXED - 1, FIXED, self.copy_size, 2**31, 2**32 - 1)
        kind = dice.randrange(4)
        if kind == 0:
            length = dice.choice((0, 8, UPDATE.size, size - COPY.size, size, 2**40, MASK - 7))
        elif kind == 1:
            token_at = dice.choice((*extremes, token_at + dice.randrange(-FIXED, 400)))
        elif kind == 2:
            token_size = dice.choice((*extremes, token_size + dice.randrange(400)))
        else:
            # These bytes become a part of the record.
            token_at = dice.randrange(FIXED, self.copy(self.newest())[2])
            for _ in range(dice.randrange(1, 40)):
                data[start + COPY.size + UPDATE.size + dice.randrange(max(1, token_size))] = dice.randrange(256)
        UPDATE.pack_into(data, start + COPY.size, record, boot, wall, token_at % 2**32, token_size % 2**32)
        self.seal(index, sequence, length)

    def overflow(self) -> None:
        """Writes sizes into the header with which the memory would have 2**64 + 4096 bytes. A program that calculates
        this number with 64 bits gets 4096."""
        struct.pack_into("<III", self.data, 12, 0x80001800, 0x7FFFF800, 2**32 - 1)

    def run_guardian(self) -> int:
        """Starts the guardian with this memory, and ends the host at once. Returns how the guardian ended: 0, or a
        negative signal; 2 if it refused the memory."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        area = os.memfd_create("usher-records", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        host, channel = socket.socketpair()
        try:
            os.ftruncate(area, self.size)
            os.pwrite(area, self.data, 0)
            for index in UPDATES:
                data, start, size = self.place(index)
                os.pwrite(area, data[start : start + size], self.update_at(index))
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
