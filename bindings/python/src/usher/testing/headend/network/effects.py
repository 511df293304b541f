"""What a fault does with one request: the attributes of a fault, and how two faults combine."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, TypeVar

from .replies import Reply

When = Literal["before", "after"]
"""Whether the fault happens before or after the head-end executes the request (and changes the session table)."""

Edit = Callable[[Reply], Reply]


class Delivery(str, Enum):
    """The ways in which the head-end sends a reply."""

    WHOLE = "whole"
    CLOSE = "close"
    """The head-end sends nothing and closes the connection."""
    RESET = "reset"
    """The head-end sends nothing and resets the connection (RST)."""
    RESET_IN_HEAD = "reset-in-head"
    """The head-end sends half of the status line and headers, and then resets the connection."""
    RESET_IN_BODY = "reset-in-body"
    """The head-end sends the headers and a part of the body, and then resets the connection."""
    TRUNCATED = "truncated"
    """``Content-Length`` is greater than the number of body bytes that the head-end sends before it closes the
    connection."""
    SHORT_LENGTH = "short-length"
    """``Content-Length`` is less than the number of body bytes that the head-end sends."""
    BAD_CHUNKS = "bad-chunks"
    """The head-end sends a body in chunked encoding; the size of a chunk is not a number."""
    TRUNCATED_CHUNKS = "truncated-chunks"
    """The head-end sends a body in chunked encoding, and closes the connection before the last chunk."""
    ENDLESS = "endless"
    """The head-end sends a body of ``size_bytes`` blanks, as fast as the client reads."""
    TRICKLE = "trickle"
    """The head-end sends the body in small pieces, at intervals on its clock."""
    PACED = "paced"
    """The head-end sends the whole reply, including the headers, in the pieces of ``pace``, each at its time on the
    head-end's clock."""
    LIMITED = "limited"
    """The head-end sends the first ``keep_bytes`` bytes of the reply, headers included, and closes the connection. If
    the reply is shorter, the client gets all of it, and the connection stays open."""
    SLOW_CLOSE = "slow-close"
    """The head-end sends the whole reply with ``Connection: close``, and closes the connection ``every_ms`` later."""
    RANDOM_CHUNK = "random-chunk"
    """The head-end sends the status and the headers of a chunked reply, then random bytes, and closes the
    connection."""
    RANDOM = "random"
    """The head-end sends random bytes and closes the connection."""


@dataclass(frozen=True)
class Pace:
    """The sizes and times of the pieces in which the head-end sends a reply.

    Attributes:
        piece_bytes: the size of a piece.
        variation_bytes: how much larger or smaller a piece may be; the size is random.
        gap_us: microseconds between two pieces.
        bytes_per_ms: the speed; the head-end sends a piece when a line of this speed would have delivered the piece.
            None: no limit.
    """

    piece_bytes: int
    variation_bytes: int = 0
    gap_us: int = 0
    bytes_per_ms: int | None = None

    def pieces(self, size: int, seed: int) -> Iterator[tuple[int, int, int]]:
        """Yields for each piece its time in ms after the start of the reply, and its first and last offset."""
        chosen = random.Random(seed)
        start = index = 0
        while start < size:
            varied = self.piece_bytes + chosen.randint(-self.variation_bytes, self.variation_bytes)
            end = min(size, start + varied)
            through = 0 if self.bytes_per_ms is None else end // self.bytes_per_ms
            yield through + index * self.gap_us // 1000, start, end
            start, index = end, index + 1


F = TypeVar("F", bound="Effects")


@dataclass(frozen=True)
class Effects:
    """What a fault does.

    Attributes:
        label: its text in the journal.
        hold: holds the request back until ``release()``, either before the head-end executes it or after that.
        delay_ms: ``(before, after)``: how long the head-end waits before and after it executes the request, in ms on
            its clock.
        jitter_ms: how much longer or shorter each delay other than 0 is; the time is random.
        effect: whether the head-end executes the request. None: it executes the request, unless another fault, combined
            by ``|``, has False.
        edits: functions that change the reply, in order.
        delivery: how the head-end sends the reply.
        keep_bytes: for a truncated reply, the number of body bytes sent or announced (None: half); for a limited reply,
            the number of bytes.
        size_bytes: for an endless reply, its length; for random bytes, their number.
        piece_bytes: for a trickle, bytes per piece.
        every_ms: for a trickle, ms between pieces, the first at once; for a slow close, ms from the reply to the close.
        pace: for a paced reply, its pieces.
        toxicity: the probability that the fault really happens to a request for which the fault script has chosen it.
        seed: the seed of random bytes and of the random sizes of pieces.
    """

    label: str
    hold: When | None = None
    delay_ms: tuple[int, int] = (0, 0)
    jitter_ms: int = 0
    effect: bool | None = None
    edits: tuple[Edit, ...] = ()
    delivery: Delivery = Delivery.WHOLE
    keep_bytes: int | None = None
    size_bytes: int = 0
    piece_bytes: int = 1
    every_ms: int = 0
    pace: Pace | None = None
    toxicity: float = 1.0
    seed: int = 0

    def __or__(self: F, other: Effects) -> F:
        sends = other if other.delivery is not Delivery.WHOLE else self
        return replace(
            self,
            label=f"{self.label} | {other.label}",
            hold=other.hold or self.hold,
            delay_ms=(self.delay_ms[0] + other.delay_ms[0], self.delay_ms[1] + other.delay_ms[1]),
            jitter_ms=max(self.jitter_ms, other.jitter_ms),
            effect=self.effect if other.effect is None else other.effect,
            edits=self.edits + other.edits,
            delivery=sends.delivery,
            keep_bytes=sends.keep_bytes,
            size_bytes=sends.size_bytes,
            piece_bytes=sends.piece_bytes,
            every_ms=sends.every_ms,
            pace=sends.pace,
            toxicity=self.toxicity * other.toxicity,
        )

    @property
    def processes(self) -> bool:
        """Whether the head-end executes the request."""
        return self.effect is not False

    def drawn(self: F, source: random.Random) -> F | None:
        """Returns the fault for one request, with its random choices made; None if this request does not get it."""
        if self.toxicity < 1.0 and source.random() >= self.toxicity:
            return None
        before, after = (ms and max(0, ms + source.randint(-self.jitter_ms, self.jitter_ms)) for ms in self.delay_ms)
        return replace(self, delay_ms=(before, after), jitter_ms=0, seed=source.getrandbits(32))


class FaultError(Exception):
    """Raised if a fault does not fit the reply, which is a mistake in the test. The head-end replies with status
    500."""
