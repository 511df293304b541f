#!/usr/bin/env python3
"""Runs the benchmarks and writes what came out. `make bench` makes ready what they need, then calls this.

    benchmarks/bench.py --programs build/bench --out build/bench-out            all of them
    benchmarks/bench.py --programs build/bench --out build/bench-out --quick    only whether they run: figures mean nothing
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import heartbeats
import report

PARTS = {"heartbeats": heartbeats.measure}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--programs", type=Path, required=True, help="where the C programs are")
    parser.add_argument("--out", type=Path, required=True, help="folder for RESULTS.md")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="one short repetition")
    parser.add_argument("--command", default="make bench", help="what the report says it was made by")
    told = parser.parse_args()
    unknown = set(told.parts) - PARTS.keys()
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    repetitions = 1 if told.quick else told.repetitions
    sections: list[report.Section] = []
    loads = [os.getloadavg()[0]]
    for name in told.parts or PARTS:
        print(f"usher: bench: {name}", flush=True)
        found = PARTS[name](told.programs.resolve(), repetitions, told.quick)
        for section in found:
            print(section.text())
            for goal in section.goals:
                print(goal.text())
            print(flush=True)
        sections += found
        loads.append(os.getloadavg()[0])
    told.out.mkdir(parents=True, exist_ok=True)
    (told.out / "RESULTS.md").write_text(report.text(sections, told.command, loads, repetitions), encoding="utf-8")
    print(f"usher: {told.out / 'RESULTS.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
