"""The checklist of `make demo`: what the head-end's journal, its session table and the players' summaries must show.
Standard library only.
"""

from __future__ import annotations

from demo_output import OUT, WIDTH, columns
from demo_stage import HeadEnd, Screen


class Checklist:
    """The checklist: prints each claim of the demo with the evidence, and counts those that are false."""

    def __init__(self) -> None:
        self.failed = 0

    def line(self, seen: bool, claim: str, evidence: object) -> None:
        self.failed += not seen
        told = f"   {OUT.good('✓') if seen else OUT.bad('✗')} {claim}"
        proof = OUT.dim(f"[{evidence}]")
        OUT.say(f"{told}  {proof}" if columns(f"{told}  {proof}") <= WIDTH else f"{told}\n     {proof}")


def order_is_right(routes: list[str]) -> bool:
    """Returns whether the requests are set-up, licence, one or more heartbeats, and teardown, in this order, and no
    others."""
    beats = routes[2:-1]
    return (
        routes[:2] == ["setup", "license"]
        and routes[-1:] == ["teardown"]
        and len(beats) >= 1
        and set(beats) == {"heartbeat"}
    )


def steps(routes: list[str]) -> str:
    beats = routes.count("heartbeat")
    told = [route for index, route in enumerate(routes) if route != "heartbeat" or "heartbeat" not in routes[:index]]
    return " → ".join(f"heartbeat x{beats}" if route == "heartbeat" else route for route in told)


def check(
    head_end: HeadEnd, one: Screen, refused: Screen, two: Screen, clear: Screen, running_when_refused: bool
) -> bool:
    journal, table = head_end.journal(), head_end.sessions()
    violations = head_end.ask("violations")["violations"]
    setups = [entry for entry in journal if entry["route"] == "setup"]
    granted = [entry for entry in setups if entry["status"] == 200]
    limit = [entry for entry in setups if entry["error_code"] == 1007]
    active = [session for session in table if session["state"] == "active"]
    list_ = Checklist()
    OUT.say(f"\n{OUT.bold('What was seen')}\n")

    for screen, entry in zip((one, two), granted, strict=False):
        routes = [other["route"] for other in journal if other["session"] == entry["session"]]
        statuses = {other["status"] for other in journal if other["session"] == entry["session"]}
        list_.line(
            order_is_right(routes),
            f"{screen.name}: set-up, licence, heartbeats, teardown, in this order",
            f"journal: {steps(routes)}",
        )
        list_.line(
            statuses == {200}, f"{screen.name}: the head-end granted every request", f"journal: HTTP {sorted(statuses)}"
        )
        beats = routes.count("heartbeat"), screen.summary.get("heartbeats_sent")
        list_.line(
            beats[0] == beats[1],
            f"{screen.name}: player and head-end count the same heartbeats",
            f"player {beats[1]}, head-end {beats[0]}",
        )
        list_.line(
            screen.events.count("SESSION_ENDED") == 1 and screen.events[-1:] == ["PLAYBACK_CLOSED"],
            f"{screen.name}: its last events report the end of its session, then that it is closed",
            f"summary: … {', '.join(screen.events[-2:])}",
        )
        list_.line(screen.exit_code == 0, f"{screen.name}: played the whole clip", f"exit code {screen.exit_code}")
    list_.line(
        len(granted) == 2,
        "the head-end granted two sessions in total",
        f"journal: {len(granted)} set-ups with HTTP 200",
    )

    facts = f"journal: {len(limit)} x HTTP {limit[0]['status']}, code 1007" if limit else "journal: none"
    list_.line(len(limit) == 1, f"{refused.name}, act 2: the head-end refused one set-up for the limit", facts)
    list_.line(
        running_when_refused, "screen one was still playing at that time", "its process ran, its session was active"
    )
    list_.line(
        refused.exit_code == 3,
        f"{refused.name}, act 2: ended with the exit code for a refusal",
        f"exit code {refused.exit_code}",
    )
    list_.line(
        refused.error.get("service_code") == 1007
        and refused.error.get("status_name") == "USHER_E_LIMIT"
        and bool(refused.error.get("summary")),
        f"{refused.name}, act 2: printed the reason in plain words",
        f"summary: “{refused.error.get('summary', '')}”",
    )
    licences = [entry for entry in journal if entry["route"] == "license"]
    nothing = (
        len(licences) == len(granted)
        and refused.summary.get("licence_size") == 0
        and refused.summary.get("video") is None
    )
    asked = f"journal: {len(licences)} licence requests for {len(granted)} sessions"
    facts = f"summary: {refused.summary.get('licence_size')} bytes; {asked}"
    list_.line(nothing, f"{refused.name}, act 2: asked for no licence, decoded nothing", facts)
    ends = [entry["at_ms"] for entry in journal if entry["route"] == "teardown"]
    in_turn = len(granted) == 2 and bool(ends) and ends[0] <= granted[1]["at_ms"]
    list_.line(in_turn, "screen two got its session after screen one's was torn down", "journal: order of arrival")

    for track, what in (("video", "picture"), ("audio", "sound")):
        hashes = [clear.hash(track), one.hash(track), two.hash(track)]
        list_.line(
            hashes[0] != "" and len(set(hashes)) == 1,
            f"{what}: both screens decoded exactly the clear clip",
            f"sha256 {hashes[0][:16]}…",
        )
    states = ", ".join(session["state"] for session in table)
    list_.line(not active and len(table) == 2, "no session is held at the end", f"session table: {states}")
    claim = "the head-end found no violation: no stale token, no late heartbeat, nothing after teardown"
    list_.line(not violations, claim, f"violations: {len(violations)}")
    for violation in violations:
        OUT.say(f"       {violation}")
    return list_.failed == 0
