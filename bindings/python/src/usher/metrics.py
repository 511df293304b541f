"""What a context has done so far, for monitoring."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ._c import abi, ffi


@dataclass(frozen=True)
class Metrics:
    """Counters and present values of a context, from `Context.metrics()`. A counter begins at 0 with the context and
    never decreases.

    Attributes:
        sessions_held: present value: playbacks whose session is active or doubtful.
        sessions_opened: sessions that began, each with the event SESSION_STARTED.
        sessions_lost: sessions that failed after they had begun.
        setups_sent: set-up requests that the library sent, repeated ones included. This and the next four counters do
            not count the requests that a customer SSM delegate lets the host send.
        heartbeats_sent: heartbeat requests.
        teardowns_sent: teardown requests.
        licenses_sent: licence requests for players and for renewals.
        others_sent: requests for certificates, for entitlements and to key servers, and those of
            Delegate.connect_ahead().
        retries: heartbeats, renewals and teardowns that the library repeated, because the earlier request had no good
            reply. The counters of requests above include them.
        keep_alives: keep-alives that succeeded: heartbeats and renewals, each with the event KEPT_ALIVE.
        lateness_ms: the sum of the `lateness_ms` of all keep-alives that `keep_alives` counts, ms.
        late_at_most_10_ms: keep-alives with a `lateness_ms` of at most 10. The next fields count keep-alives with a
            `lateness_ms` of at most 50 and more, so each number includes the number before it.
        denials_ssm: denials of the session manager: replies with an HTTP status of 400 or more, or with a code of the
            service. A denial counts even if the library then repeats the request with success. With a customer SSM
            delegate, the library counts the refusals that the host reports.
        denials_license: denials of the licence server.
        denials_certificate: denials of the certificate server.
        denials_entitlement: denials of the entitlement server.
        teardowns_failed: sessions whose teardown failed.
        connections_opened: connections that the library began to open, those that failed included.
        connections_reused: replies that arrived over a connection which had brought a reply before.
        requests_queued: present value: requests that wait in the queue of their origin.
        requests_in_flight: present value: requests that were sent and have no reply yet.
        callbacks: present value: callbacks that are queued or running.
    """

    sessions_held: int
    sessions_opened: int
    sessions_lost: int
    setups_sent: int
    heartbeats_sent: int
    teardowns_sent: int
    licenses_sent: int
    others_sent: int
    retries: int
    keep_alives: int
    lateness_ms: int
    late_at_most_10_ms: int
    late_at_most_50_ms: int
    late_at_most_100_ms: int
    late_at_most_500_ms: int
    late_at_most_1000_ms: int
    late_at_most_5000_ms: int
    denials_ssm: int
    denials_license: int
    denials_certificate: int
    denials_entitlement: int
    teardowns_failed: int
    connections_opened: int
    connections_reused: int
    requests_queued: int
    requests_in_flight: int
    callbacks: int

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """Returns the metrics in the text format of Prometheus, version 0.0.4. The page `metrics` of the manual lists
        the names of the metrics.

        Args:
            labels: labels for every sample, e.g. ``{"screen": "3"}``, of 4096 bytes in total. A program with several
                contexts needs them, to tell the contexts apart.

        Raises:
            InvalidArgumentError: the labels are too long, or a label has a control character other than a newline.
        """
        given = ",".join(f'{name}="{_escaped(value)}"' for name, value in (labels or {}).items())
        raw = abi.Metrics(struct_size=ctypes.sizeof(abi.Metrics), **asdict(self))
        text = ffi.c_string(given or None, "labels")
        return ffi.filled_buffer(
            lambda buffer, size: ffi.lib.usher_metrics_text(ctypes.byref(raw), text, buffer, size)
        ).decode()


def metrics_of(handle: abi.ContextHandle) -> Metrics:
    raw = abi.Metrics(struct_size=ctypes.sizeof(abi.Metrics))
    ffi.lib.usher_context_metrics(handle, ctypes.byref(raw))
    return Metrics(*(getattr(raw, name) for name, *_ in abi.Metrics._fields_[1:]))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
