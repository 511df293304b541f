"""Faults under the names that toxiproxy and WireMock give them, with the attributes of the originals.

toxiproxy's faults concern a connection; here each concerns the reply to one request, on the head-end's clock. The
parameter ``stream`` has toxiproxy's meaning: with ``downstream`` (the default) the head-end executes the request, and
the fault happens to its reply; with ``upstream`` the fault happens before the head-end executes the request.
``toxicity`` is the probability that the fault really happens to a request for which the fault script has chosen it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from .effects import Delivery, Effects, Pace, When

Stream = Literal["downstream", "upstream"]

T = TypeVar("T", bound="FieldFaults")

_STEP_MS = 100
"""toxiproxy limits the bandwidth in steps of this length, in ms."""
_RANDOM_BYTES = 512

TOXICS = ("latency", "jitter", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer", "limit_data")
WIREMOCK_FAULTS = (
    "EMPTY_RESPONSE",
    "MALFORMED_RESPONSE_CHUNK",
    "RANDOM_DATA_THEN_CLOSE",
    "CONNECTION_RESET_BY_PEER",
)


@dataclass(frozen=True)
class FieldFaults(Effects):
    """The class methods of ``Fault`` that have the names of toxiproxy and WireMock."""

    # toxiproxy.

    @classmethod
    def latency(
        cls: type[T], latency: int = 0, jitter: int = 0, *, stream: Stream = "downstream", toxicity: float = 1.0
    ) -> T:
        """Delays the reply by ``latency`` ms, plus or minus ``jitter`` ms; the time is random and not less than 0."""
        ms, spread = _whole("latency", latency), _whole("jitter", jitter)
        label = f"latency {ms} ms" + (f" ± {spread} ms" if spread else "")
        late = max(ms, 1) if spread else ms  # drawn() adds no jitter to a delay of 0
        delay = (late, 0) if _upstream(stream) else (0, late)
        return cls(label, delay_ms=delay, jitter_ms=spread, toxicity=_chance(toxicity))

    @classmethod
    def jitter(cls: type[T], jitter: int, *, stream: Stream = "downstream", toxicity: float = 1.0) -> T:
        """Delays the reply by a random time of up to ``jitter`` ms. It is the same fault as ``latency(0, jitter)``."""
        return cls.latency(0, jitter, stream=stream, toxicity=toxicity)

    @classmethod
    def bandwidth(cls: type[T], rate: int, *, toxicity: float = 1.0) -> T:
        """Sends the reply, including its headers, at ``rate`` KB/s (1 KB is 1,000 bytes)."""
        speed = _whole("rate", rate, 1)
        pace = Pace(speed * _STEP_MS, bytes_per_ms=speed)
        return cls(f"bandwidth {speed} KB/s", delivery=Delivery.PACED, pace=pace, toxicity=_chance(toxicity))

    @classmethod
    def slow_close(cls: type[T], delay: int, *, toxicity: float = 1.0) -> T:
        """Sends the whole reply with ``Connection: close``, and closes the connection ``delay`` ms later, or when the
        client closes it."""
        ms = _whole("delay", delay)
        return cls(f"slow close {ms} ms", delivery=Delivery.SLOW_CLOSE, every_ms=ms, toxicity=_chance(toxicity))

    @classmethod
    def timeout(cls: type[T], timeout: int, *, stream: Stream = "downstream", toxicity: float = 1.0) -> T:
        """Sends nothing, and closes the connection ``timeout`` ms later. If ``timeout`` is 0, the connection stays
        open until a test calls ``release()`` or the client disconnects."""
        ms, before = _whole("timeout", timeout), _upstream(stream)
        when: When = "before" if before else "after"
        return cls(
            f"timeout {ms} ms",
            hold=None if ms else when,
            delay_ms=(ms, 0) if before else (0, ms),
            effect=not before,
            delivery=Delivery.CLOSE,
            toxicity=_chance(toxicity),
        )

    @classmethod
    def reset_peer(cls: type[T], timeout: int = 0, *, stream: Stream = "downstream", toxicity: float = 1.0) -> T:
        """Sends nothing, and resets the connection (RST) ``timeout`` ms later."""
        ms, before = _whole("timeout", timeout), _upstream(stream)
        return cls(
            f"reset peer {ms} ms",
            delay_ms=(ms, 0) if before else (0, ms),
            effect=not before,
            delivery=Delivery.RESET,
            toxicity=_chance(toxicity),
        )

    @classmethod
    def slicer(cls: type[T], average_size: int, size_variation: int = 0, delay: int = 0, *, toxicity: float = 1.0) -> T:
        """Sends the reply, including its headers, in slices of ``average_size`` bytes, plus or minus a random number of
        up to ``size_variation`` bytes, with ``delay`` microseconds between them."""
        size, gap = _whole("average_size", average_size, 1), _whole("delay", delay)
        variation = _whole("size_variation", size_variation)
        if variation >= size:
            raise ValueError(f"size_variation: {variation} is not less than average_size, {size}")
        label = f"slicer {size} B" + (f" ± {variation} B" if variation else "") + (f" every {gap} us" if gap else "")
        pace = Pace(size, variation, gap)
        return cls(label, delivery=Delivery.PACED, pace=pace, toxicity=_chance(toxicity))

    @classmethod
    def limit_data(cls: type[T], bytes: int, *, toxicity: float = 1.0) -> T:
        """Sends the first ``bytes`` bytes of the reply, headers included, and closes the connection. A shorter reply
        arrives whole, and its connection stays open."""
        kept = _whole("bytes", bytes)
        return cls(f"limit data {kept} B", delivery=Delivery.LIMITED, keep_bytes=kept, toxicity=_chance(toxicity))

    # WireMock.

    @classmethod
    def empty_response(cls: type[T]) -> T:
        """Closes the connection without a reply (WireMock: EMPTY_RESPONSE). The head-end does not execute the
        request."""
        return cls("EMPTY_RESPONSE", effect=False, delivery=Delivery.CLOSE)

    @classmethod
    def malformed_response_chunk(cls: type[T]) -> T:
        """Sends the status and the headers of a chunked reply, then random bytes, and closes the connection (WireMock:
        MALFORMED_RESPONSE_CHUNK). The head-end executes the request."""
        return cls("MALFORMED_RESPONSE_CHUNK", delivery=Delivery.RANDOM_CHUNK, size_bytes=_RANDOM_BYTES)

    @classmethod
    def random_data_then_close(cls: type[T]) -> T:
        """Sends random bytes instead of a reply, and closes the connection (WireMock: RANDOM_DATA_THEN_CLOSE). The
        head-end executes the request."""
        return cls("RANDOM_DATA_THEN_CLOSE", delivery=Delivery.RANDOM, size_bytes=_RANDOM_BYTES)

    @classmethod
    def connection_reset_by_peer(cls: type[T]) -> T:
        """Resets the connection (RST) without a reply (WireMock: CONNECTION_RESET_BY_PEER). The head-end does not
        execute the request."""
        return cls("CONNECTION_RESET_BY_PEER", effect=False, delivery=Delivery.RESET)


def plain_form(value: Mapping[str, Any] | str) -> dict[str, Any]:
    """Returns a fault in the form ``{"kind": name, …arguments}``. Also takes a name alone, as WireMock writes faults,
    and an object of toxiproxy: ``{"type": name, "attributes": {…}, "stream": …, "toxicity": …}``.

    Raises:
        ValueError: the object has members that toxiproxy does not have.
    """
    if isinstance(value, str):
        return {"kind": value}
    if "type" not in value or "kind" in value:
        return dict(value)
    toxic = dict(value)
    made = {"kind": toxic.pop("type"), **toxic.pop("attributes", {})}
    toxic.pop("name", None)  # toxiproxy's name for this one toxic, such as latency_downstream
    if toxic.get("stream") == "downstream":
        del toxic["stream"]
    if unknown := set(toxic) - {"stream", "toxicity"}:
        raise ValueError(f"a toxic has no {', '.join(sorted(unknown))}")
    return made | toxic


def _whole(name: str, value: int, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}: {value!r} is not a whole number of at least {least}")
    return value


def _chance(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0 or math.isnan(value):
        raise ValueError(f"toxicity: {value!r} is not a number from 0 to 1")
    return float(value)


def _upstream(stream: Stream) -> bool:
    if stream not in get_args(Stream):
        raise ValueError(f"stream: {stream!r} is neither downstream nor upstream")
    return stream == "upstream"
