"""The figures of a run of chaos as a table, and the section of docs/faults.md that has this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos_verdict import LATE_MS, REACHABLE_MS
from page import CHAOS, PAGE

Found = Mapping[str, Mapping[str, Any]]
"""The results of chaos.py by the name of the variant."""

GUARDED = "with a guardian"
HEAD = f"""
`make chaos` writes this section. It plays 50 items with a [period](glossary.md#period) of 5 s, in network namespaces
and in real time. Each account may have one session, which the head-end keeps for 10 s after the last
[heartbeat](glossary.md#heartbeat). A seed decides the troubles: loss of 30 % of the packets, partitions of 5, 20 and 60
s, restarts of the head-end with its session table and without it, other addresses of the machine, stops of the host by
SIGSTOP. Every minute SIGKILL kills the host while nothing else is broken, and a new host plays the same items. Between
two troubles there are at least 8 s without one. The judge compares the events of all hosts with the head-end's journal
and session table.

A session counts as *reachable* if everything worked in the last {REACHABLE_MS / 1000:g} s of its
[lease](glossary.md#lease), and as *not reachable* otherwise. *Replies lost*: while the network lost packets, two
replies in a row did not arrive, so the head-end refused the token that the host had. A session that was torn down while
its host lived and held it counts as lost and reachable. A heartbeat counts as late in two cases: the library says that
it sent the heartbeat more than {LATE_MS / 1000:g} s late, although everything worked since it was due; or the head-end
got the heartbeat more than {LATE_MS / 1000:g} s later than a period after the keep-alive before it, although everything
worked since that keep-alive. *Untold*: the head-end refused a request or lost a session, and no event of the host says
so.
"""

CAUSES = ("unreachable", "table", "replies")
ROWS = (
    ("seed; length in s", "", lambda found: f"{found['seed']}; {found['seconds']:.0f}"),
    ("troubles; deaths of the host", "", lambda found: f"{len(found['troubles'])}; {found['kills']}"),
    ("sessions; heartbeats answered", "", lambda found: f"{found['sessions']}; {found['heartbeats']}"),
    ("slots that a dead host still held one second after its death", "0 with a guardian", lambda f: f["slots left"]),
    ("sessions lost that were reachable before their lease ended", "0", lambda found: len(found["lost"])),
    (
        "other sessions lost: not reachable; the head-end lost its table; replies lost",
        "",
        lambda found: "; ".join(str(found["lost, by cause"].get(why, 0)) for why in CAUSES),
    ),
    ("heartbeats late while everything worked", "0", lambda found: len(found["late"])),
    ("untold", "0", lambda found: len(found["untold"])),
)


def table(found: Found) -> str:
    """Returns the figures as a table of Markdown."""
    lines = [f"| | goal | {' | '.join(found)} |", "|---" * (len(found) + 2) + "|"]
    for title, goal, figure in ROWS:
        lines.append(f"| {title} | {goal} | {' | '.join(str(figure(one)) for one in found.values())} |")
    return "\n".join(lines)


def missed(found: Found) -> list[str]:
    """Returns the goals that a variant has missed, each with what was found."""
    faults = [
        f"{variant}, {goal}: {one}"
        for variant, run in found.items()
        for goal in ("lost", "late", "untold")
        for one in run[goal]
    ]
    if found.get(GUARDED, {}).get("slots left"):
        faults.append(f"{GUARDED}: slots left after each death: {found[GUARDED]['slots left after each death']}")
    return faults


def write(found: Found) -> None:
    """Writes the section into docs/faults.md."""
    before = PAGE.read_text(encoding="utf-8").partition(CHAOS)[0]
    PAGE.write_text(before.rstrip("\n") + "\n" + CHAOS + HEAD + "\n" + table(found) + "\n", encoding="utf-8")
