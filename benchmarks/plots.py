"""Draws the figures as SVG. Imports matplotlib only when it draws."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measure import Spread

OURS, PEER = "#b5483a", "#8a9199"


def axes(title: str, width: float, height: float) -> tuple[Any, Any]:
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "usher", "svg.fonttype": "none", "font.size": 9})
    matplotlib.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    figure, found = importlib.import_module("matplotlib.pyplot").subplots(figsize=(width, height), layout="constrained")
    figure.patch.set_facecolor("white")
    found.set_title(title, loc="left")
    return figure, found


def save(figure: Any, file: Path) -> None:
    figure.savefig(file, metadata={"Date": None, "Creator": None})
    importlib.import_module("matplotlib.pyplot").close(figure)
    file.write_text(
        "\n".join(line.rstrip() for line in file.read_text(encoding="utf-8").splitlines()) + "\n", encoding="utf-8"
    )


def plain_numbers(axis: Any) -> None:
    """Writes the numbers on an axis in full, such as 1,000, and not as powers of ten."""
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def beats(file: Path, title: str, figures: Mapping[str, Spread]) -> None:
    """Draws one point per program on a logarithmic axis, with quartiles as whiskers; libusher has another colour."""
    figure, found = axes(title, 7, 0.3 * len(figures) + 0.9)
    names = list(figures)[::-1]
    for place, name in enumerate(names):
        told = figures[name]
        colour = OURS if name.startswith("libusher") else PEER
        whiskers = [[told.median - told.low], [told.high - told.median]]
        found.errorbar(told.median, place, xerr=whiskers, fmt="o", color=colour, markersize=5, elinewidth=1.2)
        found.text(told.high * 1.08, place, f"{told.median:.0f}", va="center")
    found.set_yticks(range(len(names)), names)
    found.set_xscale("log")
    found.set_xlim(10, max(told.high for told in figures.values()) * 1.7)
    found.grid(axis="x", color="#e4e6e8", linewidth=0.6)
    found.set_axisbelow(True)
    plain_numbers(found.xaxis)
    found.set_xlabel("CPU µs per heartbeat (logarithmic)")
    save(figure, file)


def rates(file: Path, by_delay: Mapping[int, Mapping[str, float]]) -> None:
    """Draws the heartbeats per second of each program, with one mark per delay of the server."""
    names = list(next(iter(by_delay.values())))[::-1]
    figure, found = axes("Beats per second", 7, 0.3 * len(names) + 1.3)
    for (delay, figures), mark in zip(by_delay.items(), "os^Dv", strict=False):
        colours = [OURS if name.startswith("libusher") else PEER for name in names]
        found.scatter([figures[name] for name in names], range(len(names)), c=colours, marker=mark, s=26)
        found.scatter([], [], c="#333333", marker=mark, s=26, label="at once" if not delay else f"after {delay} ms")
    found.set_yticks(range(len(names)), names)
    found.set_xscale("log")
    found.grid(axis="x", color="#e4e6e8", linewidth=0.6)
    found.set_axisbelow(True)
    plain_numbers(found.xaxis)
    found.set_xlabel("beats per second (logarithmic)")
    found.figure.legend(title="The server replies", loc="outside right upper", frameon=False)
    save(figure, file)


def lateness(file: Path, curves: Mapping[str, Sequence[float]]) -> None:
    """Draws, for each number of milliseconds, which share of the heartbeats is later than this."""
    figure, found = axes("Heartbeats later than ... ms", 7, 3)
    for (name, ordered), style in zip(curves.items(), ("-", "--", ":"), strict=False):
        step = sorted(set(ordered))
        at = {value: index for index, value in enumerate(ordered)}  # the last index of each value
        later = [max(1 - (at[value] + 1) / len(ordered), 0.5 / len(ordered)) for value in step]
        found.step([value + 1 for value in step], later, style, where="post", color=OURS, label=name)
    found.axvline(21, color=PEER, linewidth=0.8)
    found.set_xscale("log")
    found.set_yscale("log")
    plain_numbers(found.xaxis)
    found.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    found.set_xlabel("milliseconds late, plus 1 (logarithmic); the line: 20 ms")
    found.set_ylabel("share of the beats")
    found.legend(frameon=False)
    save(figure, file)
