#!/usr/bin/env python3
"""Runs the benchmarks and writes the results. `make bench` builds the programs, then runs this script.

benchmarks/bench.py --programs build/bench --library build/shipped/libusher.so --out benchmarks
... --quick --out build/bench/out       checks only that they run; its figures are not valid
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import counts
import guardian
import heartbeats
import held
import idle
import latency
import overhead
import rates
import report
import setups
from measure import Run

PARTS = {
    "heartbeats": heartbeats.measure,
    "counts": counts.measure,
    "tls": heartbeats.measure_tls,
    "guardian": guardian.measure,
    "journal": heartbeats.measure_journal,
    "rates": rates.measure,
    "setups": setups.measure,
    "latency": latency.measure,
    "held": held.measure,
    "idle": idle.measure,
    "overhead": overhead.measure,
}


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def tell(section: report.Section) -> None:
    print(section.text())
    print(flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--programs", type=Path, required=True, help="folder of the C programs")
    parser.add_argument("--library", type=Path, required=True, help="the libusher.so that they link")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="folder for RESULTS.md, figures/ and plots/; keeps the results of parts that do not run",
    )
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument(
        "--bounds",
        type=numbers,
        default=(0, 8, 64, 256, 1000),
        help="requests in flight to compare; 0: the library's default",
    )
    parser.add_argument("--quick", action="store_true", help="one short repetition, no plots")
    told = parser.parse_args()
    unknown = set(told.parts) - PARTS.keys()
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    pictures = None if told.quick else told.out / "plots"
    (pictures or told.out).mkdir(parents=True, exist_ok=True)
    run = Run(
        told.programs.resolve(),
        told.library.resolve(),
        1 if told.quick else told.repetitions,
        told.quick,
        told.bounds,
        pictures,
    )
    for name in told.parts or PARTS:
        print(f"usher: bench: {name}", flush=True)
        load = os.getloadavg()[0]
        found = PARTS[name](run)
        report.measured(name, found, run.repetitions, load).store(told.out / "figures")
        for section in () if told.quick else found:
            tell(section)
        if told.quick:
            print(f"ok - {name}: {sum(len(section.rows) for section in found)} figures")
    parts = [part for part in (report.stored(told.out / "figures", name) for name in PARTS) if part]
    (told.out / "RESULTS.md").write_text(report.text(parts), encoding="utf-8")
    if not told.quick:
        print(report.goals(parts))
    print(f"usher: {told.out / 'RESULTS.md'}")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the `with` blocks stop nginx
    sys.exit(main())
