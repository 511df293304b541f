"""Draws a scene as SVG: a lane for each program or server, an arrow for each message. The picture runs no script and
loads no font. It has its own background, so that it is readable on light and dark pages."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from .messages import Scene, Step

MARGIN, TOP = 84, 64
"""The distance from the edges to the first and last lane, and from the top to the first row, in pixels."""
GAP_LEAST = 110
ROW, ROW_WITH_DETAIL, ROW_OF_TIME = 34, 48, 44
"""The heights of rows."""
SANS, BOLD, MONO, SMALL = 7.0, 7.6, 7.3, 6.3
"""The widths of a character of the four fonts."""
PADDING = 30
"""The width that two lanes need between them in addition to the text, for the head of the arrow and for space."""
BOX_HEIGHT = 28
DASHED = {"reply", "return", "event"}
IN_CODE = {"call", "event"}
"""The kinds of steps whose text is a name in the code."""

STYLE = """
  .page { fill: #ffffff; stroke: #d5dae1; }
  .lane { stroke: #b4bdc9; stroke-dasharray: 2 4; }
  .box { fill: #eef2f8; stroke: #8592a3; }
  .arrow { stroke-width: 1.6; fill: none; }
  .dashed { stroke-dasharray: 6 4; }
  .call, .return { stroke: #5b3fa8; } .head-call, .head-return { fill: #5b3fa8; }
  .event { stroke: #1b6b3a; } .head-event { fill: #1b6b3a; }
  .request, .reply { stroke: #1f5fae; } .head-request, .head-reply { fill: #1f5fae; }
  .failed { stroke: #b3261e; } .head-failed { fill: #b3261e; }
  text { font: 13px system-ui, "Segoe UI", Roboto, "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #1d2530;
    text-anchor: middle; paint-order: stroke; stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round; }
  .code { font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
  .detail { font-size: 11.5px; fill: #4a5666; }
  .bad { fill: #b3261e; }
  .name { font-weight: 600; stroke: none; }
  .time { font-style: italic; fill: #4a5666; }
  .pause { stroke: #8592a3; stroke-dasharray: 1 5; }
  .cross { stroke: #b3261e; stroke-width: 3; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #12171e; stroke: #2c3643; }
    .lane { stroke: #4d5a6b; }
    .box { fill: #222c38; stroke: #6d7c90; }
    .call, .return { stroke: #b9a3f5; } .head-call, .head-return { fill: #b9a3f5; }
    .event { stroke: #7ddc9c; } .head-event { fill: #7ddc9c; }
    .request, .reply { stroke: #82b6ff; } .head-request, .head-reply { fill: #82b6ff; }
    .failed { stroke: #ff9d94; } .head-failed { fill: #ff9d94; }
    text { fill: #e6ebf2; stroke: #12171e; }
    .detail, .time { fill: #b0bccb; }
    .bad { fill: #ff9d94; }
    .pause { stroke: #8c9bb0; }
    .cross { stroke: #ff9d94; }
  }
"""


def places(scene: Scene) -> dict[str, float]:
    """Returns the x of each lane. Two lanes are far enough apart for the texts between them."""
    needed = {pair: float(GAP_LEAST) for pair in pairwise(scene.lanes)}
    for step in scene.steps:
        pair = (step.sender, step.receiver) if (step.sender, step.receiver) in needed else (step.receiver, step.sender)
        if step.kind not in ("time", "death", "birth") and pair in needed:
            width = max(len(step.text) * (MONO if step.kind in IN_CODE else SANS), len(step.detail) * SMALL)
            needed[pair] = max(needed[pair], width + PADDING)
    for earlier, later in needed:
        needed[earlier, later] = max(needed[earlier, later], (len(earlier) + len(later)) * BOLD / 2 + PADDING)
    found, x = {scene.lanes[0]: float(MARGIN)}, float(MARGIN)
    for pair, gap in needed.items():
        x += round(gap)
        found[pair[1]] = x
    return found


def height(step: Step) -> int:
    if step.kind in ("time", "death", "birth"):
        return ROW_OF_TIME
    return ROW_WITH_DETAIL if step.detail else ROW


def box(x: float, y: float, name: str) -> list[str]:
    width = len(name) * BOLD + 20
    return [
        f'<rect class="box" x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOX_HEIGHT}" rx="6"/>',
        f'<text class="name" x="{x:.1f}" y="{y + 19:.1f}">{escape(name)}</text>',
    ]


def message(step: Step, begin: float, end: float, y: float) -> list[str]:
    """Returns an arrow at `y`, with the text above and the detail below it, as lines of SVG."""
    look = "failed" if step.failed else step.kind
    dashed = " dashed" if step.kind in DASHED else ""
    tip = 9 if end > begin else -9
    middle = (begin + end) / 2
    lines = [
        f'<path class="arrow {look}{dashed}" d="M{begin:.1f} {y} H{end - tip:.1f}"/>',
        f'<path class="head-{look}" d="M{end:.1f} {y} l{-tip} -4.5 v9 z"/>',
        f'<text class="{"code" if step.kind in IN_CODE else "plain"}{" bad" if step.failed else ""}" '
        f'x="{middle:.1f}" y="{y - 7}">{escape(step.text)}</text>',
    ]
    if step.detail:
        lines.append(f'<text class="detail" x="{middle:.1f}" y="{y + 16}">{escape(step.detail)}</text>')
    return lines


def rows(scene: Scene, x: dict[str, float]) -> tuple[list[str], dict[str, list[tuple[float, float]]], float]:
    """Returns the drawn steps, the parts of each lane's line, and the y below the last step."""
    drawn: list[str] = []
    since: dict[str, float | None] = dict.fromkeys(scene.lanes, TOP - 18.0)
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in scene.lanes}
    y = float(TOP)
    for step in scene.steps:
        y += height(step)
        if step.kind == "time":
            ends = f'x1="{MARGIN / 2}" x2="{max(x.values()) + MARGIN / 2:.1f}" y1="{y - 22}" y2="{y - 22}"'
            middle = (min(x.values()) + max(x.values())) / 2
            drawn += [f'<line class="pause" {ends}/>']
            drawn += [f'<text class="time" x="{middle:.1f}" y="{y - 18}">{escape(step.text)}</text>']
        elif step.kind == "death":
            for name in (step.sender, step.receiver):
                start = since[name]
                if start is None:
                    raise ValueError(f"{name} dies twice")
                lines[name].append((start, y - 18))
                since[name] = None
                drawn.append(f'<path class="cross" d="M{x[name] - 7:.1f} {y - 25} l14 14 m0 -14 l-14 14"/>')
            middle = (x[step.sender] + x[step.receiver]) / 2
            drawn.append(f'<text class="plain bad" x="{middle:.1f}" y="{y - 14}">{escape(step.text)}</text>')
        elif step.kind == "birth":
            for name in (step.sender, step.receiver):
                since[name] = y
                drawn += box(x[name], y - BOX_HEIGHT, name)
            middle = (x[step.sender] + x[step.receiver]) / 2
            drawn.append(f'<text class="time" x="{middle:.1f}" y="{y - 9}">{escape(step.text)}</text>')
        else:
            drawn += message(step, x[step.sender], x[step.receiver], y - (18 if step.detail else 6))
    for name, start in since.items():
        if start is not None:
            lines[name].append((start, y + 14))
    return drawn, lines, y + 14


def svg(scene: Scene, title: str) -> str:
    x = places(scene)
    drawn, lines, bottom = rows(scene, x)
    width, whole_height = max(x.values()) + MARGIN, bottom + 14
    told = [f"{number}. {step}" for number, step in enumerate(scene.steps, 1)]
    lanes = [
        f'<line class="lane" x1="{x[name]:.1f}" y1="{begin}" x2="{x[name]:.1f}" y2="{end}"/>'
        for name, parts in lines.items()
        for begin, end in parts
    ]
    head = f'viewBox="0 0 {width:.0f} {whole_height:.0f}" width="{width:.0f}" height="{whole_height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {head} role="img" aria-labelledby="title description">',
            f'<title id="title">{escape(title)}</title>',
            '<desc id="description">',
            *map(escape, told),
            "</desc>",
            f"<style>{STYLE}</style>",
            f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{whole_height - 1:.0f}" rx="8"/>',
            *lanes,
            *(line for name in scene.lanes for line in box(x[name], 18, name)),
            *drawn,
            "</svg>",
            "",
        ]
    )
