"""Pictures of the figures, as SVG. matplotlib is imported only when one is drawn."""

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
    file.write_text("\n".join(line.rstrip() for line in file.read_text(encoding="utf-8").splitlines()) + "\n", encoding="utf-8")


def bars(file: Path, title: str, figures: Mapping[str, Spread]) -> None:
    """A bar each on a logarithmic axis, quartiles as whiskers; ours in their own colour."""
    figure, found = axes(title, 7, 0.33 * len(figures) + 0.9)
    names = list(figures)[::-1]
    medians = [figures[name].median for name in names]
    whiskers = [[figures[name].median - figures[name].low for name in names], [figures[name].high - figures[name].median for name in names]]
    colours = [OURS if name.startswith("libusher") else PEER for name in names]
    found.barh(names, medians, xerr=whiskers, color=colours, height=0.65, error_kw={"elinewidth": 0.8, "ecolor": "#333333"})
    found.set_xscale("log")
    found.set_xlim(10, max(figures[name].high for name in names) * 1.6)
    for index, name in enumerate(names):
        found.text(figures[name].high * 1.06, index, f"{figures[name].median:.0f}", va="center")
    found.set_xlabel("CPU µs per heartbeat (logarithmic)")
    save(figure, file)


def rates(file: Path, by_delay: Mapping[int, Mapping[str, float]]) -> None:
    """Beats per second by contestant, a group for each delay."""
    names = list(next(iter(by_delay.values())))[::-1]
    figure, found = axes("Beats per second", 7, 0.5 * len(names) + 1)
    shades = ["#d9a29b", "#c8756a", OURS], ["#c9cdd1", "#a9afb5", PEER]
    height = 0.8 / len(by_delay)
    for group, (delay, figures) in enumerate(by_delay.items()):
        places = [index + 0.4 - height * (group + 0.5) for index in range(len(names))]
        colours = [shades[0 if name.startswith("libusher") else 1][2 - group % 3] for name in names]
        found.barh(places, [figures[name] for name in names], height=height * 0.9, color=colours)
        for place, name in zip(places, names, strict=True):
            found.text(figures[name] * 1.06, place, f"{figures[name]:,.0f}  (answers after {delay} ms)", va="center", fontsize=6)
    found.set_yticks(range(len(names)), names)
    found.set_xscale("log")
    found.set_xlim(1, max(max(figures.values()) for figures in by_delay.values()) * 12)
    found.set_xlabel("beats per second (logarithmic)")
    save(figure, file)


def lateness(file: Path, curves: Mapping[str, Sequence[float]]) -> None:
    """Which share of the beats is later than so many milliseconds."""
    figure, found = axes("Heartbeats later than ... ms", 7, 3)
    for (name, ordered), style in zip(curves.items(), ("-", "--", ":"), strict=False):
        step = sorted(set(ordered))
        at = {value: index for index, value in enumerate(ordered)}  # the last of each value
        later = [max(1 - (at[value] + 1) / len(ordered), 0.5 / len(ordered)) for value in step]
        found.step([value + 1 for value in step], later, style, color=OURS, label=name)
    found.axvline(101, color=PEER, linewidth=0.8)
    found.set_xscale("log")
    found.set_yscale("log")
    found.set_xlabel("milliseconds late, plus 1 (logarithmic); the line: 100 ms")
    found.set_ylabel("share of the beats")
    found.legend(frameon=False)
    save(figure, file)
