"""What ``usher watch`` shows: accounts, sessions with their time until they expire, the newest requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .feed import State

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

BAR = 20
MOST_SESSIONS = 20
MOST_REQUESTS = 8
MOST_ACCOUNTS = 8


def screen(state: State) -> RenderableType:
    """Returns the whole screen."""
    from rich.console import Group
    from rich.text import Text

    active = [row for row in state.sessions.values() if row["state"] == "active"]
    active.sort(key=lambda row: (row["account"], row["created_ms"]))
    parts: list[RenderableType] = [_title(state), Text()]
    parts += [_accounts(state), Text()]
    parts += [_sessions(state, active[:MOST_SESSIONS])]
    if len(active) > MOST_SESSIONS:
        parts.append(Text(f"and {len(active) - MOST_SESSIONS} more sessions", style="dim"))
    parts += [Text(), _requests(state)]
    if state.faults:
        labels = ", ".join(f"{fault['route']}: {fault['label']}" for fault in state.faults[:4])
        parts.append(Text(f"\nfaults to come: {labels}", style="magenta"))
    if state.held:
        parts.append(Text(f"requests that a fault holds back: {len(state.held)}", style="magenta"))
    return Group(*parts)


def _title(state: State) -> Text:
    from rich.text import Text

    facts, totals = state.facts, state.totals
    limit, requests = facts.get("limit", 0), totals.get("requests", 0)
    made = Text()
    made.append("usher watch  ", style="bold")
    made.append(
        f"{limit} {'stream' if limit == 1 else 'streams'} per account, keep-alive every "
        f"{facts.get('period_ms', 0) / 1000:g} s, clock {facts.get('clock')}, "
        f"{requests} {'request' if requests == 1 else 'requests'}",
        style="dim",
    )
    if state.stopped:
        made.append(f"\n{state.stopped}", style="bold red")
    return made


def _table(*columns: tuple[str, str]) -> Table:
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title, align in columns:
        made.add_column(title, justify="right" if align == "right" else "left", no_wrap=True, overflow="ellipsis")
    return made


def _accounts(state: State) -> Table:
    from rich.text import Text

    made = _table(("account", ""), ("slots", ""), ("", ""), ("refused", "right"))
    for _, row in sorted(state.accounts.items())[:MOST_ACCOUNTS]:
        used = sum(
            1
            for session in state.sessions.values()
            if session["account"] == row["name"] and session["state"] == "active"
        )
        limit = row.get("limit") or state.facts.get("limit", 0)
        full = used >= limit
        squares = "■" * min(used, 20) + "□" * max(0, min(limit, 20) - used)
        refused = row.get("refused", 0)
        made.add_row(
            Text(row["name"], style="bold"),
            Text(squares, style="yellow" if full else "green"),
            f"{used} of {limit}",
            Text(str(refused), style="red" if refused else "dim"),
        )
    return made


def _sessions(state: State, rows: list[dict[str, Any]]) -> Table:
    from rich.text import Text

    made = _table(
        ("session", ""), ("account", ""), ("content", ""), ("beats", "right"), ("kept", "right"), ("expires in", "")
    )
    lifetime = max(1, state.facts.get("lifetime_ms", 1))
    now = state.now_ms()
    for row in rows:
        since = max(0.0, now - row["kept_ms"])
        left = max(0.0, row["expires_ms"] - now)
        is_late = since > state.facts.get("late_ms", lifetime)
        filled = min(BAR, round(BAR * left / lifetime))
        bar = Text("━" * filled, style="yellow" if is_late else "green")
        bar.append("─" * (BAR - filled), style="dim")
        bar.append(f" {left / 1000:.1f} s", style="yellow" if is_late else "")
        made.add_row(
            row["token"],
            row["account"] + (f" / {row['device']}" if row["device"] else ""),
            ", ".join(row["contents"]),
            str(row["beats"]),
            f"{since / 1000:.1f} s ago",
            bar,
        )
    if not rows:
        made.add_row(Text("no session", style="dim"), "", "", "", "", "")
    return made


def _requests(state: State) -> Table:
    from rich.text import Text

    made = _table(("request", "right"), ("", ""), ("account", ""), ("sent", ""), ("answer", ""), ("", ""))
    for row in sorted(state.requests.values(), key=lambda each: -int(each["number"]))[:MOST_REQUESTS]:
        status = row["status"]
        answer = str(status) if status is not None else row["outcome"]
        if row["code"] is not None:
            answer += f" / {row['code']}"
        good = status is not None and status < 300
        note = row["message"] or (f"→ {row['given']}" if row["given"] else "")
        if row["fault"]:
            note = f"fault: {row['fault']}"
        made.add_row(
            str(row["number"]),
            row["route"] if row["line"] is None else row["line"],
            row["account"] or "",
            ", ".join(row["sent"]),
            Text(answer, style="green" if good else "red"),
            Text(note, style="magenta" if row["fault"] else "dim"),
        )
    return made
