"""The panel Sessions."""

from __future__ import annotations

SCRIPT = r"""
// Sessions

const STATE_WORDS = { active: "held", torn_down: "torn down", expired: "expired", killed: "killed" };

function matches(...texts) {
  return !shown.text || texts.some(text => text && text.toLowerCase().includes(shown.text));
}

function drawSessions() {
  const { totals } = known, all = [...known.sessions.values()].reverse();
  const chosen = all.filter(s => (shown.account === null || s.account === shown.account)
    && (shown.state === "all" || (shown.state === "active") === (s.state === "active"))
    && matches(s.account, s.device, s.token, STATE_WORDS[s.state], ...s.contents));
  const over = chosen.filter(s => s.state !== "active").sort((a, b) => b.ended_ms - a.ended_ms);
  const list = [...chosen.filter(s => s.state === "active"), ...over];
  children($("sessions"), list.slice(0, shown.sessions), s => s.id, buildSession, fillSession);
  const counted = ["active", ...["torn_down", "expired", "killed"].filter(state => totals[state])];
  const words = counted.map(state => `${totals[state].toLocaleString("en")} ${STATE_WORDS[state]}`).join(", ");
  put($("sessions-count"), all.length ? words : "");
  const total = totals.active + totals.torn_down + totals.expired + totals.killed;
  const hidden = list.length > shown.sessions ? 0 : total - all.length;
  const none = all.length ? ["No session matches. ", clearer()] : ["No session yet."];
  empty("sessions-empty", chosen.length === 0, hidden > 0, none, [`${many(hidden, "older session")} not shown`]);
}

// Only visible rows update their times and move their bars.
const inSight = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    target.inSight = isIntersecting;
    if (target.isConnected) lease(target); else inSight.unobserve(target);
  }
});

function buildSession(session) {
  const row = make("div", "row");
  row.setAttribute("role", "row");
  row.state = make("span");
  row.account = cell("name"); row.device = cell("name"); row.content = cell("name");
  row.period = cell(""); row.token = cell("mono");
  row.since = make("span"); row.left = make("span"); row.bar = make("i"); row.mark = make("b");
  row.mark.style.insetInlineStart = `${100 - 100 * known.he.period_ms / known.he.lifetime_ms}%`;
  const track = make("div", "track", row.bar, row.mark);
  const lease = cell("lease", make("div", "words", row.since, row.left), track);
  row.append(cell("state", make("i"), row.state), row.account, row.device, row.content, row.period, lease, row.token);
  if (clockNow() - session.created_ms < 2000 && !known.manual) row.classList.add("fresh");
  inSight.observe(row);
  return row;
}

function fillSession(row, session) {
  row.dataset.state = session.state;
  put(row.state, STATE_WORDS[session.state]);
  named(row.account, session.account);
  named(row.device, session.device ?? "\u2013");
  const more = session.more_contents ? ` and ${session.more_contents} more` : "";
  named(row.content, (session.contents.join(", ") || "\u2013") + more);
  put(row.period, exact(known.he.period_ms));
  named(row.token, session.token);
  row.token.title = `session ${session.id}: ${many(session.beats, "keep-alive")}, ${many(session.licenses, "licence")}`;
  lease(row);
}

function share(session) {
  return `scaleX(${Math.max(0, Math.min(1, (session.expires_ms - clockNow()) / known.he.lifetime_ms))})`;
}

/* One animation shrinks the bar until the expiry; a keep-alive starts a new one. */
function lease(row) {
  const session = row.item;
  if (!session) return;
  row.shrinking?.cancel();
  row.shrinking = null;
  if (session.state !== "active") return sayLease(row);
  if (!row.inSight) return;
  sayLease(row);
  row.bar.style.transition = known.manual ? "transform .35s" : "";
  if (known.manual || !live() || calm.matches) return;
  const duration = Math.max(0, session.expires_ms - clockNow());
  const frames = [{ transform: share(session) }, { transform: "scaleX(0)" }];
  row.shrinking = row.bar.animate(frames, { duration, fill: "forwards" });
}

function sayLease(row) {
  const session = row.item, now = clockNow();
  const late = session.state === "active" && now - session.kept_ms > known.he.late_ms;
  if (late !== "late" in row.dataset) late ? row.dataset.late = "" : delete row.dataset.late;
  if (session.state === "active") {
    put(row.since, `${span(now - session.kept_ms)} ago`);
    put(row.left, `${late ? "late, " : ""}${span(session.expires_ms - now)} left`);
    if (!row.shrinking) row.bar.style.transform = share(session);
  } else {
    put(row.since, `at ${stamp(session.ended_ms, false)}`);
    put(row.left, many(session.beats, "keep-alive"));
  }
}
"""
